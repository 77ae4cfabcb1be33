// SPDX-License-Identifier: Apache-2.0
// One seed of every kind, for checks with independent programs.
import type { SeedInput } from '../../../src/bootstrap/index.ts';
import {
  aCustomJoin,
  aK3sJoin,
  aKubeadmJoin,
  aNetwork,
  anRke2Join,
  aSeedInput,
  MAC,
  noJoin,
} from '../../../src/bootstrap/testing/a-seed.ts';

const proxy = {
  http: 'http://proxy.example:3128',
  https: 'http://proxy.example:3128',
  none: ['10.0.0.0/8'],
};

const THEIRS = `#cloud-config
timezone: Europe/Zurich
packages: [nfs-common]
users:
  - name: ops
    ssh_authorized_keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMf"]
write_files:
  - {path: /etc/mine, content: "yes", permissions: "0644"}
runcmd:
  - [sysctl, --system]
  - 'echo "prepared: yes"'
  - echo 2026-01-01
`;

const dualStack = aNetwork({
  interfaces: [
    {
      mac: MAC,
      mtu: 9000,
      v4: { kind: 'static', addresses: ['10.0.0.11/24'], gateway: '10.0.0.1' },
      v6: { kind: 'static', addresses: ['2001:db8::11/64'], gateway: 'fe80::1' },
      routes: [{ to: '192.168.0.0/16', via: '10.0.0.254' }],
    },
    {
      mac: 'bc:24:11:00:00:08',
      mtu: undefined,
      v4: { kind: 'off' },
      v6: { kind: 'off' },
      routes: [],
    },
  ],
  dns: ['10.0.0.1', '2001:db8::53'],
  search: ['example.org'],
});

/** Strings that YAML 1.1 does not read as strings, or that some readers reject. */
const ODD_FILES = [
  'yes',
  '0644',
  '1:30',
  '=',
  '~',
  '<<',
  '- a\n- b\n',
  ' lead\n',
  'trail \n',
  '\n\n',
  '\ttab\n',
  'a\r\nb',
  '\u007f\u0085\u2028\ufeff',
  '🙂 ß',
  '#x\n',
  '%YAML 1.1\n---\n',
  'a: b # c\n\n\n',
].map((content, index) => ({ path: `/etc/odd/${index}`, content, permissions: '0640' }));

export const SAMPLES: Readonly<Record<string, SeedInput>> = {
  k3s: aSeedInput(),
  'k3s-list': aSeedInput({
    join: aK3sJoin({ sha256: undefined, proxy, registries: 'mirrors: {}\n' }),
  }),
  'k3s-script': aSeedInput({
    join: aK3sJoin({ install: 'script', agentArgs: ['--node-ip=10.0.0.9'] }),
  }),
  'k3s-preinstalled': aSeedInput({ preinstalled: true, join: aK3sJoin({ install: 'none' }) }),
  rke2: aSeedInput({ join: anRke2Join() }),
  kubeadm: aSeedInput({ join: aKubeadmJoin({ proxy, packages: ['kubeadm'] }), network: dualStack }),
  'kubeadm-agent': aSeedInput({ join: aKubeadmJoin({ via: 'agent' }) }),
  custom: aSeedInput({ join: aCustomJoin() }),
  'custom-cloud-config': aSeedInput({
    join: aCustomJoin({ script: undefined, cloudConfig: THEIRS }),
  }),
  'k3s-cloud-config': aSeedInput({ join: aK3sJoin({ cloudConfig: THEIRS }) }),
  'root-login': aSeedInput({
    login: { user: 'root', publicKeys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMf a "b": c'] },
    machine: { ...aSeedInput().machine, name: 'autoscaler.node-1' },
  }),
  'no-login': aSeedInput({ login: { user: 'ubuntu', publicKeys: [] }, join: noJoin() }),
  'odd-files': aSeedInput({ join: noJoin({ files: ODD_FILES }) }),
};
