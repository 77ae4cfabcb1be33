// SPDX-License-Identifier: Apache-2.0
// A variable also overrides keys of the file that cannot be combined with the key of the variable.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { VARIABLES } from '../overrides/variables.ts';
import { renderConfigYaml } from '../show/show-config.ts';
import { loadProblems, loadText, VALID } from '../testing/load-text.ts';

const EVERY_SECTION = readFileSync(
  new URL('./fixtures/every-section.yaml', import.meta.url),
  'utf8',
);

const SAMPLES: Readonly<Record<string, string>> = {
  PM_API_URL: 'https://pve9:8006',
  PM_NODE: 'pve1',
  PM_SERVICE_TOKEN_ID: 'other@pve!k8s',
  PM_SERVICE_TOKEN_SECRET: 'hunter2',
  PM_TLS_INSECURE: 'true',
  PM_VERIFY_CERTIFICATES: 'false',
  IMPORT_STORAGE: 'imports',
  ISO_STORAGE: 'isos',
  VM_STORAGE: 'fast',
  BRIDGE: 'vmbr9',
  CLOUD_IMAGE_URL: 'https://images.example/noble.img',
  K3S_VERSION: 'v1.34.4+k3s1',
  K3S_SERVER_URL: 'https://10.0.0.3:6443',
  K3S_CLUSTER_TOKEN: 'hunter2',
  SSH_PUBLIC_KEY: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG90aGVyIQ== you@host',
  PROVIDER_STATE_DB: '/data/state.db',
  PENDING_VM_TIMEOUT_SECONDS: '600',
  RECONCILE_INTERVAL_SECONDS: '30',
  BIND_ADDRESS: '127.0.0.1',
  PORT: '50055',
  LOG_LEVEL: 'debug',
  PROXMOX_TOKEN_ID: 'other@pve!k8s',
  PROXMOX_SECRET: 'hunter2',
  PROXMOX_SKIP_TLS_VERIFY: 'true',
};

/** The same config written with alternative keys. */
const VARIANTS: Readonly<Record<string, string>> = {
  'as it is': EVERY_SECTION,
  'with fingerprints': EVERY_SECTION.replace(
    'caFile: pve-root-ca.pem',
    `fingerprints: [${'ab'.repeat(32)}]`,
  ),
  'with insecure': EVERY_SECTION.replace('caFile: pve-root-ca.pem', 'insecure: true'),
  'with references to Secrets': EVERY_SECTION.replace(
    /token: \{ id: .*\}/,
    'token: { idRef: { name: pve }, secretRef: { name: pve } }',
  ).replace('token: auto', 'token: { secretRef: { name: k3s } }'),
  'with a denied host': EVERY_SECTION.replace('deny: []', 'deny: [pve3]'),
  'with a list of storages': EVERY_SECTION.replace('disks: local-lvm', 'disks: [a1, b1]'),
};

function errorsOf(text: string, environment: Record<string, string>) {
  return loadProblems(text, { environment }).filter((line) => line.includes(': error: '));
}

describe('a config with every section', () => {
  it('is tested with every variable of other systems that applies to it', () => {
    const names = VARIABLES.filter(
      ({ system }) => system === 'externalgrpc' || system === 'kubenodesmith',
    ).map(({ name }) => name);
    expect(Object.keys(SAMPLES).sort()).toEqual([...names].sort());
  });

  describe.each(Object.entries(VARIANTS))('%s', (_, text) => {
    it('is valid without a variable', () => {
      expect(errorsOf(text, {})).toEqual([]);
    });

    it.each(Object.entries(SAMPLES))('is valid with %s=%s', (name, value) => {
      expect(errorsOf(text, { [name]: value })).toEqual([]);
      const loaded = loadText(text, { environment: { [name]: value } });
      expect(loaded.ok && renderConfigYaml(loaded)).toContain(`# env ${name}`);
    });

    it('is valid with all variables of one system', () => {
      const all = Object.entries(SAMPLES).filter(([name]) => !name.startsWith('PROXMOX_'));
      expect(errorsOf(text, Object.fromEntries(all))).toEqual([]);
    });
  });
});

const WITH_PASSWORD = VALID.replace(
  /token: .*/,
  'user: root@pam\n    passwordFile: /etc/password\n    tls: { caFile: ca.pem }',
);

function region(text: string, environment: Record<string, string>) {
  const loaded = loadText(text, { environment });
  expect(loaded.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  return loaded.ok
    ? { ...loaded.config.regions['lab'], shown: renderConfigYaml(loaded) }
    : undefined;
}

describe('a variable removes conflicting keys of the file', () => {
  it.each(['PM_TLS_INSECURE', 'PROXMOX_SKIP_TLS_VERIFY'])('%s=true removes tls.caFile', (name) => {
    const found = region(EVERY_SECTION, { [name]: 'true' });
    expect(found?.tls).toEqual({ caPath: undefined, fingerprints: [], insecure: true });
    expect(found?.shown).not.toContain('caFile');
    expect(found?.shown).toContain('fingerprints: []  # default');
  });

  it.each(['PM_TLS_INSECURE', 'PROXMOX_SKIP_TLS_VERIFY'])('%s=false keeps tls.caFile', (name) => {
    expect(region(EVERY_SECTION, { [name]: 'false' })?.tls?.caPath).toBe('pve-root-ca.pem');
    const insecure = EVERY_SECTION.replace('caFile: pve-root-ca.pem', 'insecure: true');
    expect(region(insecure, { [name]: 'false' })?.tls).toMatchObject({ insecure: false });
  });

  it.each([
    ['PM_SERVICE_TOKEN_ID', 'PM_SERVICE_TOKEN_SECRET'],
    ['PROXMOX_TOKEN_ID', 'PROXMOX_SECRET'],
  ])('%s and %s remove user and password', (id, secret) => {
    const found = region(WITH_PASSWORD, { [id]: 'a@pve!b', [secret]: 'hunter2' });
    expect(found?.login).toEqual({
      kind: 'token',
      id: 'a@pve!b',
      secret: { kind: 'environment', variable: secret },
    });
    expect(found?.shown).not.toContain('passwordFile');
    expect(found?.shown).not.toContain('root@pam');
  });

  it('PXE_USER and PXE_PASSWORD remove the token', () => {
    const found = region(EVERY_SECTION, { PXE_USER: 'root@pam', PXE_PASSWORD: 'hunter2' });
    expect(found?.login).toEqual({
      kind: 'password',
      user: 'root@pam',
      password: { kind: 'environment', variable: 'PXE_PASSWORD' },
    });
    expect(found?.shown).not.toContain('scaler@pve');
  });

  it('PM_NODE removes hosts.deny', () => {
    const text = EVERY_SECTION.replace('allow: [pve1, pve2], deny: []', 'deny: [pve1]');
    expect(region(text, { PM_NODE: 'pve1' })?.hosts).toEqual({ allow: ['pve1'], deny: [] });
  });

  it('of two conflicting variables the first in the table is used, with a warning about the other', () => {
    const environment = {
      PM_SERVICE_TOKEN_ID: 'a@pve!b',
      PM_SERVICE_TOKEN_SECRET: 'hunter2',
      PXE_USER: 'root@pam',
      PXE_PASSWORD: 'hunter2',
    };
    expect(region(VALID, environment)?.login).toMatchObject({ kind: 'token', id: 'a@pve!b' });
    const message = (key: string) =>
      `proxmox.lab.${key}: is not used: PM_SERVICE_TOKEN_SECRET cannot be combined with it and takes precedence`;
    expect(loadProblems(VALID, { environment })).toEqual([
      `environment:PXE_PASSWORD: warning: ${message('passwordEnv')}`,
      `environment:PXE_USER: warning: ${message('user')}`,
    ]);
  });

  it('PXE_PASSWORD without PXE_USER does not remove the token', () => {
    expect(loadProblems(VALID, { environment: { PXE_PASSWORD: 'hunter2' } })).toEqual([
      "environment:PXE_PASSWORD: error: proxmox.lab.passwordEnv: has no effect together with 'token'; keep only one of them",
    ]);
  });

  it('CLOUD_IMAGE_URL keeps the checksum of the file with a warning', () => {
    const environment = { CLOUD_IMAGE_URL: 'https://images/noble.img' };
    expect(loadProblems(VALID, { environment })).toEqual([
      "environment:CLOUD_IMAGE_URL: warning: images.jammy.url: is verified against 'checksumUrl' from the file, which belongs to another image",
    ]);
    const same = { CLOUD_IMAGE_URL: 'https://images/jammy.img' };
    expect(loadProblems(VALID, { environment: same })).toEqual([]);
  });
});
