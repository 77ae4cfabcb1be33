// SPDX-License-Identifier: Apache-2.0
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  aK3sJoin,
  anRke2Join,
  aSeedInput,
  BOOTSTRAP_TOKEN,
  K3S_TOKEN,
} from '../../src/bootstrap/testing/a-seed.ts';
import {
  CA_PREFIX,
  createFakeApiServer,
} from '../../src/sim/proxmox/guest/testing/fake-api-server.ts';
import { createGuestHarness } from '../../src/sim/proxmox/guest/testing/guest-harness.ts';
import { booted, downloads, seedOf } from './booted.ts';

const K3S_URL = 'https://github.com/k3s-io/k3s/releases/download/v1.34.4%2Bk3s1';
const TOKEN_FILE = '/var/lib/pvescaler/join-token';
const TOKEN_AFTER_JOIN = `K10${'a1'.repeat(32)}::none00.0000000000000000`;
const LABELS = [
  'autoscaler.proxmox/group=small',
  'autoscaler.proxmox/vmid=1250',
  'node.kubernetes.io/instance-type=medium',
  'tier=small',
  'topology.kubernetes.io/region=lab',
  'topology.kubernetes.io/zone=pve1',
];

describe('a k3s join', () => {
  it('joins at the first boot with name, labels and provider id of the machine', async () => {
    const { guest } = await booted(aSeedInput());
    const report = guest.report();
    expect(report.errors).toEqual([]);
    expect(report.warnings).toEqual([]);
    expect(report.joinAttempts).toEqual([
      {
        distribution: 'k3s',
        server: 'https://10.0.0.2:6443',
        token: K3S_TOKEN,
        nodeName: 'worker-7c9e6679',
        labels: LABELS,
        taints: [],
        kubeletArgs: ['provider-id=proxmox://lab/1250'],
        providerId: 'proxmox://lab/1250',
        caCertHashes: [],
        source: '/etc/rancher/k3s/config.yaml',
        atMs: expect.any(Number),
      },
    ]);
    expect(report.downloads).toEqual([`${K3S_URL}/k3s`, 'https://10.0.0.2:6443/ping']);
    expect(report.hostname).toBe('worker-7c9e6679');
    expect(report.instanceId).toBe('7c9e6679-7425-40de-944b-e07fc1f90ae7');
    expect(report.services).toMatchObject({
      'k3s-agent': { enabled: true, active: true },
      'qemu-guest-agent': { active: true },
      'pvescaler-join': { enabled: false },
    });
    expect(report.users).toContainEqual(expect.objectContaining({ name: 'ubuntu' }));
  });

  it('removes all secrets and disables cloud-init', async () => {
    const { guest } = await booted(aSeedInput());
    const { files, cloudInitDisabled, commandsRun } = guest.report();
    const holders = Object.entries(files).filter(([, file]) => file.content.includes(K3S_TOKEN));
    expect(holders.map(([path]) => path)).toEqual([]);
    expect(commandsRun.filter(({ text }) => text.includes(K3S_TOKEN))).toEqual([]);
    expect(cloudInitDisabled).toBe(true);
  });

  it.each([
    [K3S_TOKEN, TOKEN_AFTER_JOIN],
    [`K10${'a1'.repeat(32)}::node:password`, TOKEN_AFTER_JOIN],
    ['password', 'none00.0000000000000000'],
  ])('replaces the token %s by one without a secret', async (token, kept) => {
    const { guest } = await booted(aSeedInput({ join: aK3sJoin({ token }) }));
    const report = guest.report();
    expect(report.files[TOKEN_FILE]).toMatchObject({ content: `${kept}\n`, mode: '0600' });
    expect(report.errors).toEqual([]);
  });

  it('does nothing at the second boot, with or without the seed', async () => {
    const first = await booted(aSeedInput());
    const before = first.guest.report();
    first.guest.stop();
    await first.boot();
    expect(first.guest.report().joinAttempts).toHaveLength(1);
    expect(first.guest.report().commandsRun).toEqual(before.commandsRun);
    const { disk } = first.input;
    const again = createGuestHarness({
      disk: { ...disk, isFirstBoot: false, state: first.guest.diskState() },
    });
    await again.boot();
    expect(again.guest.report()).toMatchObject({
      hostname: 'worker-7c9e6679',
      joinAttempts: [],
      commandsRun: [],
      downloads: ['https://10.0.0.2:6443/cacerts'],
      errors: [],
      services: { 'k3s-agent': { active: true } },
    });
  });

  it.each([
    ['with the same CA', undefined],
    [
      'after a rotation of the CA',
      '-----BEGIN CERTIFICATE-----\nAB==\n-----END CERTIFICATE-----\n',
    ],
  ])('starts the agent again %s, without a secret', async (_, ca) => {
    const server = createFakeApiServer();
    const join = aK3sJoin({ token: `${CA_PREFIX}${BOOTSTRAP_TOKEN}` });
    const first = await booted(aSeedInput({ join }), { connect: server.connect });
    expect(first.guest.report().errors).toEqual([]);
    first.guest.stop();
    if (ca !== undefined) {
      server.override = (call) => (call === 'GET /cacerts' ? { status: 200, body: ca } : undefined);
    }
    const before = server.calls.length;
    const second = createGuestHarness({
      connect: server.connect,
      disk: { ...first.input.disk, isFirstBoot: false, state: first.guest.diskState() },
    });
    await second.boot();
    const report = second.guest.report();
    expect(report.errors).toEqual([]);
    expect(report.services['k3s-agent']?.active).toBe(true);
    const calls = server.calls.slice(before);
    expect(calls.filter((call) => call.includes('certificatesigningrequests'))).toEqual([]);
    expect(calls.some((call) => call.includes('/leases'))).toBe(true);
  });

  it('configures taints, the startup taint, registries, extra arguments and a mirror', async () => {
    const input = aSeedInput({
      pool: {
        labels: { 'node-role.kubernetes.io/worker': '' },
        groupLabel: 'example.org/pool',
        taints: [{ key: 'dedicated', value: 'gpu', effect: 'NoExecute' }],
        architecture: 'arm64',
      },
      join: aK3sJoin({
        downloadUrl: 'https://mirror.example/k3s/',
        registries: 'mirrors: {}\n',
        agentArgs: ['--node-ip=10.0.0.9', '--kubelet-arg=max-pods=50'],
      }),
    });
    const { guest, seed } = await booted(input);
    const report = guest.report();
    expect(report.errors).toEqual([]);
    expect(report.downloads[0]).toBe('https://mirror.example/k3s/v1.34.4%2Bk3s1/k3s-arm64');
    expect(seed.labelsToPatch).toEqual({ 'node-role.kubernetes.io/worker': '' });
    expect(report.joinAttempts).toMatchObject([
      {
        taints: [
          'dedicated=gpu:NoExecute',
          'ignore-taint.cluster-autoscaler.kubernetes.io/pvescaler-starting:NoSchedule',
        ],
        kubeletArgs: ['provider-id=proxmox://lab/1250', 'max-pods=50'],
      },
    ]);
    expect(report.joinAttempts[0]?.labels).toContain('example.org/pool=small');
    expect(report.files['/etc/rancher/k3s/registries.yaml']).toMatchObject({ mode: '0600' });
    expect(report.files['/etc/rancher/k3s/config.yaml']?.content).toContain('node-ip: "10.0.0.9"');
  });

  it('verifies the pinned checksum before anything runs', async () => {
    const sha256 = createHash('sha256').update('the real k3s').digest('hex');
    const join = aK3sJoin({ sha256 });
    const answer = (content: string) => ({
      download: downloads({ [`${K3S_URL}/k3s`]: { content } }),
    });
    const wrong = await booted(aSeedInput({ join }), answer('something else'));
    expect(wrong.guest.report().joinAttempts).toEqual([]);
    expect(wrong.guest.report().files['/usr/local/bin/k3s']).toBeUndefined();
    expect(wrong.guest.report().errors.join()).toContain('pvescaler-join');
    expect(wrong.guest.report().cloudInitDisabled).toBe(true);
    const right = await booted(aSeedInput({ join }), answer('the real k3s'));
    expect(right.guest.report().joinAttempts).toHaveLength(1);
  });

  it.each([
    ['right', 'the real k3s', 1],
    ['wrong', 'something else', 0],
  ])(
    "uses the release's checksum file if no checksum is given: %s",
    async (_, content, attempts) => {
      const sum = createHash('sha256').update('the real k3s').digest('hex');
      const list = `${'00'.repeat(32)}  k3s-airgap-images-amd64.tar\n${sum}  k3s\n`;
      const download = downloads({
        [`${K3S_URL}/k3s`]: { content },
        [`${K3S_URL}/sha256sum-amd64.txt`]: { content: list },
      });
      const { guest } = await booted(aSeedInput({ join: aK3sJoin({ sha256: undefined }) }), {
        download,
      });
      expect(guest.report().joinAttempts).toHaveLength(attempts);
    },
  );

  it.each([aK3sJoin({ sha256: undefined }), anRke2Join({ sha256: undefined })])(
    'downloads the checksum file of its release',
    async (join) => {
      const { guest } = await booted(aSeedInput({ join }));
      expect(guest.report()).toMatchObject({ errors: [], joinAttempts: [{ token: K3S_TOKEN }] });
    },
  );

  it('waits for a server that does not respond yet, and fails visibly if it never does', async () => {
    const refused = { exitCode: 7, message: 'Connection refused' };
    let calls = 0;
    const late = (url: string) => {
      if (!url.endsWith('/ping')) return undefined;
      calls += 1;
      return calls < 5 ? refused : undefined;
    };
    const { guest } = await booted(aSeedInput(), { download: late });
    expect(guest.report().joinAttempts).toHaveLength(1);
    expect(calls).toBe(5);
    const never = await booted(aSeedInput(), {
      download: downloads({ 'https://10.0.0.2:6443/ping': refused }),
    });
    await never.clock.advance(1_200_000);
    expect(never.guest.report().joinAttempts).toEqual([]);
    expect(never.guest.report().errors.join()).toContain('does not answer');
  });

  it('continues after a power failure during the join', async () => {
    const input = aSeedInput();
    const first = await booted(input, {
      download: downloads({
        'https://10.0.0.2:6443/ping': { exitCode: 7, message: 'Connection refused' },
      }),
    });
    first.guest.stop();
    const { disk } = first.input;
    const second = createGuestHarness({
      seedIso: first.input.seedIso,
      disk: { ...disk, isFirstBoot: false, state: first.guest.diskState() },
    });
    await second.boot();
    expect(second.guest.report().joinAttempts).toMatchObject([{ token: K3S_TOKEN }]);
    expect(second.guest.report().files[TOKEN_FILE]?.content).toBe(`${TOKEN_AFTER_JOIN}\n`);
  });

  it('ends with cloud-init disabled after a power failure in the first boot', async () => {
    const refused = { exitCode: 7, message: 'Connection refused' };
    const first = createGuestHarness({
      seedIso: seedOf(aSeedInput()).iso,
      download: downloads({ 'https://10.0.0.2:6443/ping': refused }),
    });
    first.guest.start();
    await first.clock.advance(180_000);
    expect(first.guest.report()).toMatchObject({ phase: 'cloud-init', joinAttempts: [] });
    expect(first.guest.report().downloads).toContain('https://10.0.0.2:6443/ping');
    first.guest.stop();
    const second = createGuestHarness({
      seedIso: first.input.seedIso,
      disk: { ...first.input.disk, isFirstBoot: false, state: first.guest.diskState() },
    });
    // cloud-init must not run beside the join, which removes its files.
    expect(second.guest.report().cloudInitDisabled).toBe(true);
    await second.boot();
    expect(second.guest.report()).toMatchObject({
      cloudInitDisabled: true,
      commandsRun: [],
      joinAttempts: [{ token: K3S_TOKEN }],
      errors: [],
    });
  });

  it("uses the vendor's script if configured", async () => {
    const { guest } = await booted(aSeedInput({ join: aK3sJoin({ install: 'script' }) }));
    const report = guest.report();
    expect(report.errors).toEqual([]);
    expect(report.downloads[0]).toBe('https://get.k3s.io');
    expect(report.joinAttempts).toMatchObject([{ token: K3S_TOKEN, labels: LABELS }]);
  });
});

describe('an RKE2 join', () => {
  it.each(['binary', 'script'] as const)('joins with its %s', async (install) => {
    const { guest } = await booted(aSeedInput({ join: anRke2Join({ install }) }));
    const report = guest.report();
    expect(report.errors).toEqual([]);
    expect(report.joinAttempts).toMatchObject([
      {
        distribution: 'rke2',
        server: 'https://10.0.0.2:9345',
        token: K3S_TOKEN,
        nodeName: 'worker-7c9e6679',
        labels: LABELS,
        providerId: 'proxmox://lab/1250',
        source: '/etc/rancher/rke2/config.yaml',
      },
    ]);
    expect(report.files[TOKEN_FILE]?.content).toBe(`${TOKEN_AFTER_JOIN}\n`);
    expect(report.services['rke2-agent']).toEqual({ enabled: true, active: true });
  });

  it("keeps the vendor's unit and adds a drop-in", async () => {
    const { guest } = await booted(aSeedInput({ join: anRke2Join() }));
    const units = Object.keys(guest.report().files).filter((path) => path.includes('rke2-agent'));
    expect(units.toSorted()).toEqual([
      '/etc/systemd/system/rke2-agent.service.d/10-pvescaler.conf',
      '/usr/local/lib/systemd/system/rke2-agent.service',
    ]);
  });

  it("finds the archive in the release's checksum file", async () => {
    const base = 'https://github.com/rancher/rke2/releases/download/v1.34.4%2Brke2r1';
    const list = `${'ab'.repeat(32)}  rke2.linux-amd64\n${'ab'.repeat(32)}  rke2.linux-amd64.tar.gz\n`;
    const { guest } = await booted(aSeedInput({ join: anRke2Join({ sha256: undefined }) }), {
      download: downloads({ [`${base}/sha256sum-amd64.txt`]: { content: list } }),
    });
    expect(guest.report().joinAttempts).toHaveLength(1);
  });
});
