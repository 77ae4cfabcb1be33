// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { formatConfigPath, valueAt } from '../config-path.ts';
import { VARIABLES } from '../overrides/variables.ts';
import { loadProblems, loadText, VALID } from '../testing/load-text.ts';
import { locateConfig, readConfig } from './read-config.ts';

const FROM_FILE = `${VALID}log: { level: debug }\n`;

function level(
  text: string,
  environment = {},
  flags: readonly { flag: string; value: string }[] = [],
) {
  const loaded = loadText(text, { environment, flags });
  if (!loaded.ok) return undefined;
  return [loaded.config.log.level, loaded.origins.get('log.level')];
}

describe('precedence of flags, environment and file', () => {
  it('uses the flag, then the environment, then the file, then the default', () => {
    const environment = { LOG_LEVEL: 'WARNING' };
    const flags = [{ flag: '--log-level', value: 'error' }];
    expect(level(VALID)).toEqual(['info', { kind: 'default', detail: '' }]);
    expect(level(FROM_FILE)).toEqual(['debug', { kind: 'file', detail: 'c.yaml:10:15' }]);
    expect(level(FROM_FILE, environment)).toEqual([
      'warn',
      { kind: 'environment', detail: 'LOG_LEVEL' },
    ]);
    expect(level(FROM_FILE, environment, flags)).toEqual([
      'error',
      { kind: 'flag', detail: '--log-level' },
    ]);
  });

  it('treats a blank variable as not set', () => {
    expect(level(FROM_FILE, { LOG_LEVEL: '  ', PVESCALER_LOG_LEVEL: '' })?.[0]).toBe('debug');
  });

  it('prefers variables of pvescaler over those of other systems, with a warning', () => {
    const environment = { LOG_LEVEL: 'error', PVESCALER_LOG_LEVEL: 'trace' };
    expect(level(VALID, environment)?.[0]).toBe('trace');
    expect(loadProblems(VALID, { environment })).toEqual([
      'environment:LOG_LEVEL: warning: log.level: is not used: PVESCALER_LOG_LEVEL sets the same key and takes precedence',
    ]);
  });

  it('sets host and port of the listener from BIND_ADDRESS and PORT', () => {
    const text = `${VALID}grpc: { listen: "10.0.0.1:1234" }\n`;
    const listen = (
      environment: Record<string, string>,
      flags: { flag: string; value: string }[] = [],
    ) => {
      const loaded = loadText(text, { environment, flags });
      return loaded.ok ? loaded.config.grpc.listen : undefined;
    };
    expect(listen({ PORT: '99' })).toEqual({ host: '10.0.0.1', port: 99 });
    expect(listen({ BIND_ADDRESS: '::' })).toEqual({ host: '::', port: 1234 });
    expect(listen({ BIND_ADDRESS: '[fe80::1%eth0]', PORT: '99' })).toEqual({
      host: 'fe80::1%eth0',
      port: 99,
    });
    expect(listen({ PORT: '99' }, [{ flag: '--port', value: '7' }])).toEqual({
      host: '10.0.0.1',
      port: 7,
    });
  });
});

describe('config from environment variables only', () => {
  const ENVIRONMENT = {
    PM_API_URL: 'https://pve.example:8006/api2/json/',
    PM_NODE: 'pve1',
    PM_SERVICE_TOKEN_ID: 'scaler@pve!k8s',
    PM_SERVICE_TOKEN_SECRET: '1f0c2b9e-7d35-4c8e-9a43-0b6f52d9c1aa',
    PM_TLS_INSECURE: 'Yes',
    PM_VERIFY_CERTIFICATES: 'off',
    IMPORT_STORAGE: 'imports',
    ISO_STORAGE: 'isos',
    VM_STORAGE: 'fast',
    BRIDGE: 'vmbr9',
    CLOUD_IMAGE_URL: 'https://images/noble.img',
    K3S_VERSION: 'v1.33.4+k3s1',
    K3S_SERVER_URL: 'https://k3s:6443',
    K3S_CLUSTER_TOKEN: 'K10aabbcc::node:ddeeff',
    SSH_PUBLIC_KEY: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGV4YW1wbGU me@host, with a comma',
    PROVIDER_STATE_DB: '/data/state.db',
    PENDING_VM_TIMEOUT_SECONDS: '60',
    RECONCILE_INTERVAL_SECONDS: '30',
  };

  it('sets every key that has a variable', () => {
    const loaded = loadText(undefined, { environment: ENVIRONMENT });
    expect(loaded.ok).toBe(true);
    if (!loaded.ok) return;
    const { config } = loaded;
    expect(config.regions['default']).toMatchObject({
      endpoints: ['https://pve.example:8006'],
      hosts: { allow: ['pve1'] },
      login: {
        kind: 'token',
        id: 'scaler@pve!k8s',
        secret: { kind: 'environment', variable: 'PM_SERVICE_TOKEN_SECRET' },
      },
      tls: { insecure: true },
      storage: { images: 'imports', seeds: 'isos', disks: ['fast'] },
    });
    expect(config.images['default']).toMatchObject({
      url: 'https://images/noble.img',
      verifyCertificates: false,
      unverified: true,
    });
    expect(config.join.k3s).toMatchObject({
      version: 'v1.33.4+k3s1',
      server: 'https://k3s:6443',
      token: { kind: 'static', source: { kind: 'environment', variable: 'K3S_CLUSTER_TOKEN' } },
    });
    expect(config.ssh.publicKeys).toHaveLength(1);
    expect(config.state.path).toBe('/data/state.db');
    expect(config.intervals.reconcileMs).toBe(30_000);
  });

  it('sets keys of every pool and warns about values below the minimum', () => {
    const environment = { BRIDGE: 'vmbr9', PENDING_VM_TIMEOUT_SECONDS: '60' };
    const loaded = loadText(VALID, { environment });
    expect(loaded.ok && loaded.config.pools[0]).toMatchObject({
      network: { interfaces: [{ bridge: 'vmbr9', model: 'virtio' }] },
      provisionTimeoutMs: 120_000,
    });
    expect(loadProblems(VALID, { environment })).toEqual([
      'environment:PENDING_VM_TIMEOUT_SECONDS: warning: pools[0].provisionTimeout: is below the minimum; 120 s is used',
    ]);
  });

  it('replaces another source of the same secret', () => {
    const loaded = loadText(VALID, {
      environment: { PROXMOX_SECRET: 'x', PROXMOX_TOKEN_ID: 'a@pve!c' },
    });
    expect(loaded.ok && loaded.config.regions['lab']?.login).toEqual({
      kind: 'token',
      id: 'a@pve!c',
      secret: { kind: 'environment', variable: 'PROXMOX_SECRET' },
    });
  });

  it('configures a login with user and password', () => {
    const environment = { PXE_HOST: '10.10.10.10', PXE_USER: 'root@pam', PXE_PASSWORD: 'hunter2' };
    const loaded = loadText(undefined, { environment });
    expect(loaded.ok && loaded.config.regions['default']).toMatchObject({
      endpoints: ['https://10.10.10.10:8006'],
      login: { kind: 'password', user: 'root@pam', password: { variable: 'PXE_PASSWORD' } },
    });
  });
});

describe('problems with variables and flags', () => {
  it.each([
    [
      'PM_TLS_INSECURE',
      'maybe',
      'proxmox.lab.tls.insecure: must be true or false (also 1, t, y, yes, on; 0, f, n, no, off)',
    ],
    [
      'PROXMOX_SKIP_TLS_VERIFY',
      '2',
      'proxmox.lab.tls.insecure: must be true or false (also 1, t, y, yes, on; 0, f, n, no, off)',
    ],
    ['PORT', 'http', 'grpc.listen: must be a port, 1 to 65535'],
    ['PORT', '0', 'grpc.listen: must be a port, 1 to 65535'],
    ['PORT', '70000', 'grpc.listen: has port 70000; the highest port is 65535'],
    ['RECONCILE_INTERVAL_SECONDS', '20s', 'intervals.reconcile: must be a whole number of seconds'],
    [
      'PM_SERVICE_TOKEN_ID',
      'nonsense',
      "proxmox.lab.token.id: must have the form 'user@realm!name'",
    ],
    ['PVESCALER_MODE', 'both', "mode: must be standalone or externalgrpc, not 'both'"],
    ['VM_STORAGE', 'a b', 'proxmox.lab.storage.disks: is not a Proxmox storage id'],
    ['LOG_LEVEL', 'loud', 'log.level: must be one of trace, debug, info, warn, error'],
  ])('reports %s=%s', (name, value, message) => {
    expect(loadProblems(VALID, { environment: { [name]: value } })).toEqual([
      `environment:${name}: error: ${message}`,
    ]);
  });

  it('reports the flag as the location of a problem', () => {
    expect(loadProblems(VALID, { flags: [{ flag: '--port', value: 'x' }] })).toEqual([
      'flag:--port: error: grpc.listen: must be a port, 1 to 65535',
    ]);
  });

  it('refuses a variable for the region when there are two regions', () => {
    const text = VALID.replace(
      'images:',
      '  two: { endpoints: [https://b:8006], token: { id: "a@pve!b", secretFile: x }, vmIds: 100-200 }\nimages:',
    );
    expect(loadProblems(text, { environment: { PM_NODE: 'pve1' } })).toEqual([
      "environment:PM_NODE: error: applies to a single region, but there are 2 ('lab', 'two'); set the key in the file",
    ]);
  });

  it('reports a missing key at the variable that created its parent', () => {
    expect(loadProblems(VALID, { environment: { K3S_VERSION: 'v1.33.4+k3s1' } })).toEqual([
      "environment:K3S_VERSION: error: join.k3s: key 'server' is missing",
    ]);
  });

  it('warns about an unknown variable with our prefix', () => {
    const environment = {
      PVESCALER_LOGLEVEL: 'x',
      PVESCALER_SERVICE_HOST: '10.0.0.1',
      PVESCALER_PORT: 'tcp://x',
    };
    expect(loadProblems(VALID, { environment })).toEqual([
      'environment:PVESCALER_LOGLEVEL: warning: unknown environment variable; did you mean PVESCALER_LOG_LEVEL?',
    ]);
    const named = VALID.replace('secretFile: /etc/token', 'secretEnv: PVESCALER_TOKEN');
    expect(loadProblems(named, { environment: { PVESCALER_TOKEN: 'x' } })).toEqual([]);
  });
});

describe('tables of variables and flags', () => {
  it('contain only existing keys and each variable once', () => {
    const state = 'state: { kubernetes: { namespace: a } }';
    const loaded = loadText(`${VALID}join: { k3s: { server: https://k:6443 } }\n${state}\n`);
    expect(loaded.ok).toBe(true);
    if (!loaded.ok) return;
    const optional = new Set([
      'token',
      'kubeconfig',
      'user',
      'passwordEnv',
      'secretEnv',
      'context',
    ]);
    for (const { target, name } of VARIABLES) {
      const path = target.map((step) =>
        step === '<region>' ? 'lab' : step === '<image>' ? 'jammy' : step === '*' ? 0 : step,
      );
      const isThere = valueAt(loaded.file, path) !== undefined || optional.has(String(path.at(-1)));
      expect(isThere, `${name} → ${formatConfigPath(path)}`).toBe(true);
    }
    expect(new Set(VARIABLES.map(({ name }) => name)).size).toBe(VARIABLES.length);
  });
});

describe('location of the config file', () => {
  it('comes from the flag, then from variables, then from the default path', () => {
    const environment = { SCALER_CONFIG_PATH: 's', PROVIDER_CONFIG: 'p', PVESCALER_CONFIG: ' o ' };
    expect(locateConfig('f', environment)).toEqual({ path: 'f', namedBy: '--config' });
    expect(locateConfig(undefined, environment)).toEqual({
      path: 'o',
      namedBy: 'PVESCALER_CONFIG',
    });
    expect(locateConfig(undefined, { ...environment, PVESCALER_CONFIG: '' }).path).toBe('p');
    expect(locateConfig(undefined, { SCALER_CONFIG_PATH: 's' }).path).toBe('s');
    expect(locateConfig(undefined, {})).toEqual({
      path: '/etc/pvescaler/config.yaml',
      namedBy: undefined,
    });
  });

  const input = { environment: {}, flags: [], homeFolder: '/h' };

  it('must exist when it was named explicitly', async () => {
    const missing = readConfig({
      ...input,
      path: '/x.yaml',
      readFile: () => Promise.resolve(undefined),
    });
    await expect(missing).rejects.toMatchObject({
      code: 'CONFIG_UNREADABLE',
      message: 'config file /x.yaml named by --config does not exist',
    });
    const denied = readConfig({
      ...input,
      path: undefined,
      readFile: () => Promise.reject(Object.assign(new Error('no'), { code: 'EACCES' })),
    });
    await expect(denied).rejects.toMatchObject({
      message: 'config file /etc/pvescaler/config.yaml cannot be read (EACCES)',
    });
  });

  it('may be missing at the default path; without a valid config the tried paths are named', async () => {
    const result = await readConfig({
      ...input,
      path: undefined,
      readFile: () => Promise.resolve(undefined),
    });
    expect(result.problems.map(({ message }) => message)).toEqual([
      "no config file was found: --config is not given, none of PVESCALER_CONFIG, PROVIDER_CONFIG, SCALER_CONFIG_PATH is set, and /etc/pvescaler/config.yaml does not exist; 'pvescaler config init' writes a first one",
      "no Proxmox cluster is configured; add at least one region to 'proxmox'",
    ]);
  });

  it('is used to read the file', async () => {
    const result = await readConfig({
      ...input,
      path: '/x.yaml',
      readFile: () => Promise.resolve(VALID),
    });
    expect(result.ok).toBe(true);
  });
});
