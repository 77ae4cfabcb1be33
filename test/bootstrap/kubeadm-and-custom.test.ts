// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  aCustomJoin,
  aKubeadmJoin,
  aNetwork,
  aSeedInput,
  BOOTSTRAP_TOKEN,
  MAC,
  noJoin,
} from '../../src/bootstrap/testing/a-seed.ts';
import { booted, KUBEADM_PACKAGES } from './booted.ts';

const pool = {
  labels: { 'node-role.kubernetes.io/worker': '', tier: 'small' },
  groupLabel: 'autoscaler.proxmox/group',
  taints: [{ key: 'bare', value: '', effect: 'NoExecute' }],
  architecture: 'amd64',
} as const;

const JOINED = {
  distribution: 'kubeadm',
  server: '10.0.0.2:6443',
  token: BOOTSTRAP_TOKEN,
  nodeName: 'worker-7c9e6679',
  labels: [
    'autoscaler.proxmox/group=small',
    'autoscaler.proxmox/vmid=1250',
    'node.kubernetes.io/instance-type=medium',
    'tier=small',
    'topology.kubernetes.io/region=lab',
    'topology.kubernetes.io/zone=pve1',
  ],
  taints: [
    'bare:NoExecute',
    'ignore-taint.cluster-autoscaler.kubernetes.io/pvescaler-starting:NoSchedule',
  ],
  providerId: 'proxmox://lab/1250',
  caCertHashes: [`sha256:${'5e'.repeat(32)}`],
  source: '/var/lib/pvescaler/kubeadm-v1beta4.yaml',
};

describe('a kubeadm join', () => {
  it('runs from user-data', async () => {
    const join = aKubeadmJoin({ packages: KUBEADM_PACKAGES, kubeletArgs: ['max-pods=30'] });
    const { guest, seed } = await booted(aSeedInput({ join, pool }));
    const report = guest.report();
    expect(report.errors).toEqual([]);
    expect(seed.agentSteps).toEqual([]);
    expect(report.joinAttempts).toMatchObject([JOINED]);
    expect(report.joinAttempts[0]?.kubeletArgs).toContain('max-pods=30');
    expect(holders(report.files, BOOTSTRAP_TOKEN)).toEqual([]);
    expect(report.cloudInitDisabled).toBe(true);
  });

  it('fails with a message if the image has no kubeadm', async () => {
    const { guest } = await booted(aSeedInput({ join: aKubeadmJoin() }));
    expect(guest.report().joinAttempts).toEqual([]);
    expect(guest.report().errors.join()).toContain('kubeadm is not in this image');
  });

  it('runs by the guest agent, without secrets on the seed or in a command line', async () => {
    const join = aKubeadmJoin({ via: 'agent', packages: KUBEADM_PACKAGES });
    const bench = await booted(aSeedInput({ join, pool }));
    expect(bench.guest.report().joinAttempts).toEqual([]);
    expect(bench.seed.userData).not.toContain(BOOTSTRAP_TOKEN);
    expect(await bench.join()).toBeUndefined();
    const report = bench.guest.report();
    expect(report.errors).toEqual([]);
    expect(report.joinAttempts).toMatchObject([JOINED]);
    expect(report.commandsRun.filter(({ text }) => text.includes(BOOTSTRAP_TOKEN))).toEqual([]);
    expect(holders(report.files, BOOTSTRAP_TOKEN)).toEqual([]);
    expect(report.cloudInitDisabled).toBe(true);
    expect(await bench.join()).toBeUndefined();
    expect(bench.guest.report().joinAttempts).toHaveLength(1);
  });

  it('by the guest agent continues after a power failure', async () => {
    const join = aKubeadmJoin({ via: 'agent' });
    const bench = await booted(aSeedInput({ join, pool }));
    expect(await bench.join()).toBe('join');
    await bench.exec(['apt-get', 'install', '-y', ...KUBEADM_PACKAGES]);
    bench.guest.stop();
    await bench.boot();
    const report = bench.guest.report();
    expect(report.joinAttempts).toMatchObject([JOINED]);
    expect(report.services['pvescaler-join']?.enabled).toBe(false);
    expect(holders(report.files, BOOTSTRAP_TOKEN)).toEqual([]);
  });

  it('reports the failed agent step and can be retried', async () => {
    const join = aKubeadmJoin({ via: 'agent' });
    const bench = await booted(aSeedInput({ join }));
    expect(await bench.join()).toBe('join');
    await bench.exec(['apt-get', 'install', '-y', ...KUBEADM_PACKAGES]);
    expect(await bench.join()).toBeUndefined();
    expect(bench.guest.report().joinAttempts).toHaveLength(1);
  });

  it('works on a clone without a seed', async () => {
    const join = aKubeadmJoin({ via: 'agent' });
    const bench = await booted(aSeedInput({ join }), {
      seedIso: undefined,
      cloudInitDrive: { name: 'worker-7c9e6679', ipconfig0: 'ip=dhcp' },
    });
    await bench.exec(['apt-get', 'install', '-y', ...KUBEADM_PACKAGES]);
    expect(await bench.join()).toBeUndefined();
    expect(bench.guest.report().joinAttempts).toMatchObject([{ nodeName: 'worker-7c9e6679' }]);
  });
});

const SCRIPT = `#!/bin/sh
set -eu
echo "$PVESCALER_NODE_NAME $PVESCALER_PROVIDER_ID $PVESCALER_NODE_LABELS $PVESCALER_VM_ID" > /srv/output
test "$PVESCALER_TOKEN" = "$(cat "$PVESCALER_TOKEN_FILE")"
test "$PVESCALER_TOKEN" = my-token
touch /srv/joined
`;

describe('a custom join', () => {
  it.each(['cloud-init', 'agent'] as const)('runs the script once, by %s', async (via) => {
    const bench = await booted(aSeedInput({ join: aCustomJoin({ via, script: SCRIPT }) }));
    expect(await bench.join()).toBeUndefined();
    const { files, errors } = bench.guest.report();
    expect(errors).toEqual([]);
    expect(files['/srv/output']?.content).toMatch(
      /^worker-7c9e6679 proxmox:\/\/lab\/1250 autoscaler\S+,tier=small\S+ 1250\n$/,
    );
    expect(files['/srv/joined']).toBeDefined();
    expect(files['/var/lib/pvescaler/join-token']).toBeUndefined();
  });

  it("runs the user's commands before the join, and cleans up afterwards", async () => {
    const cloudConfig = `#cloud-config
packages: [nfs-common]
write_files:
  - {path: /etc/mine, content: "mine\\n"}
runcmd:
  - cp /var/lib/pvescaler/join-token /srv/seen
  - [touch, /srv/ran]
`;
    const join = aCustomJoin({ script: undefined, cloudConfig });
    const { guest } = await booted(aSeedInput({ join }));
    const { files, packages, errors, warnings, cloudInitDisabled } = guest.report();
    expect([errors, warnings]).toEqual([[], []]);
    expect(files['/srv/seen']?.content).toBe('my-token\n');
    expect(files['/srv/ran']).toBeDefined();
    expect(files['/etc/mine']?.content).toBe('mine\n');
    expect(files['/var/lib/pvescaler/join-token']).toBeUndefined();
    expect(packages).toEqual(expect.arrayContaining(['nfs-common', 'qemu-guest-agent']));
    expect(cloudInitDisabled).toBe(true);
  });
});

describe('a machine without a join', () => {
  it('gets its name, users, files, packages and addresses, and disables cloud-init', async () => {
    const join = noJoin({
      packages: ['htop'],
      files: [
        { path: '/etc/odd', content: 'a\r\nb\u0007\u007fß', permissions: '640' },
        { path: '/etc/plain', content: '  indented\n\n\ttab \n', permissions: '0644' },
      ],
    });
    const network = aNetwork({
      interfaces: [
        {
          mac: MAC,
          mtu: 9000,
          v4: { kind: 'static', addresses: ['10.0.0.11/24'], gateway: '10.0.0.1' },
          v6: { kind: 'static', addresses: ['2001:db8::11/64'], gateway: 'fe80::1' },
          routes: [],
        },
      ],
      dns: ['10.0.0.1'],
      search: ['example.org'],
    });
    const machine = { ...aSeedInput().machine, name: 'autoscaler.node-1' };
    const { guest } = await booted(aSeedInput({ join, network, machine }));
    const report = guest.report();
    expect(report.errors).toEqual([]);
    expect(report.hostname).toBe('autoscaler.node-1');
    expect(report.files['/etc/odd']).toMatchObject({
      content: 'a\r\nb\u0007\u007fß',
      mode: '0640',
    });
    expect(report.files['/etc/plain']?.content).toBe('  indented\n\n\ttab \n');
    expect(report.network).toEqual([
      {
        slot: 'net0',
        name: 'eth0',
        mac: MAC.toLowerCase(),
        addresses: ['10.0.0.11/24', '2001:db8::11/64'],
        gateway: '10.0.0.1',
        nameservers: ['10.0.0.1'],
        searchDomains: ['example.org'],
      },
    ]);
    expect(report.packages).toEqual(expect.arrayContaining(['htop', 'qemu-guest-agent']));
    expect(report.joinAttempts).toEqual([]);
    expect(report.cloudInitDisabled).toBe(true);
  });

  it('boots without a guest agent', async () => {
    const { guest } = await booted(aSeedInput({ join: noJoin() }), { agentEnabled: false });
    expect(guest.report()).toMatchObject({ phase: 'running', cloudInitDisabled: true });
  });
});

function holders(files: Readonly<Record<string, { readonly content: string }>>, secret: string) {
  return Object.keys(files).filter((path) => files[path]?.content.includes(secret));
}
