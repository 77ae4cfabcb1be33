// SPDX-License-Identifier: Apache-2.0
// Complete settings with plausible values; a test overrides only what it is about.
import { aPoolConfig } from '../../config/types/testing/sample-pool.ts';
import type { Host } from '../../model/host.ts';
import type {
  FleetSettings,
  ImageSettings,
  PoolSettings,
  RegionSettings,
  SourceSettings,
} from '../context/settings.ts';

const GIB = 2 ** 30;

export const CLUSTER = 'c0ffee00-0000-4000-8000-000000000001';
export const REGION = 'memory';
export const IMAGE_SHA = 'ab'.repeat(32);

const IMAGE: ImageSettings = {
  url: 'https://images.example/noble-with-agent.img',
  format: 'qcow2',
  checksum: { algorithm: 'sha256', hex: IMAGE_SHA },
  verifyCertificates: true,
};

export const IMAGE_SOURCE: SourceSettings = { kind: 'image', ...IMAGE };

export function templateSource(clone: 'full' | 'linked' = 'full'): SourceSettings {
  return { kind: 'template', id: undefined, idByHost: {}, name: 'base', clone };
}

export function aHost(name: string, overrides: Partial<Host> = {}): Host {
  const storage = { active: true, totalBytes: 900 * GIB, freeBytes: 800 * GIB };
  return {
    region: REGION,
    name,
    online: true,
    cpus: 16,
    memoryBytes: 64 * GIB,
    storages: [
      { ...storage, name: 'local', shared: false, content: ['iso', 'import'] },
      { ...storage, name: 'local-lvm', shared: false, content: ['images'] },
      { ...storage, name: 'seeds', shared: true, content: ['iso'] },
    ],
    ...overrides,
  };
}

type RegionOverrides = Partial<Omit<RegionSettings, 'limits'>> & {
  readonly limits?: Partial<RegionSettings['limits']>;
};

export function aRegion({ limits, ...overrides }: RegionOverrides = {}): RegionSettings {
  return {
    name: REGION,
    hosts: { allow: [], deny: [] },
    vmIds: { from: 1_250, to: 1_299 },
    storage: { images: 'local', seeds: 'seeds', disks: ['local-lvm'] },
    limits: {
      createsPerHost: 2,
      createsPerStorage: 2,
      deletesPerHost: 2,
      deletesPerStorage: 2,
      ...limits,
    },
    tags: ['pvescaler'],
    resourcePool: undefined,
    taskTimeoutMs: 15 * 60_000,
    ...overrides,
  };
}

export function aPool(overrides: Partial<PoolSettings> = {}): PoolSettings {
  const config = aPoolConfig();
  return {
    ...config,
    regions: [REGION],
    from: { kind: 'image', image: 'noble' },
    source: IMAGE_SOURCE,
    names: { prefix: 'worker', role: undefined, suffix: 'id' },
    vmOptions: {},
    network: { ...config.network, v6: { kind: 'off' } },
    placement: { ...config.placement, memoryReserveBytes: 0 },
    deletion: { mode: 'shutdown', shutdownTimeoutMs: 60_000 },
    seed: {
      registration: {
        labels: {},
        groupLabel: 'autoscaler.proxmox/group',
        taints: [],
        architecture: 'amd64',
      },
      login: { user: 'ubuntu', publicKeys: [] },
      preinstalled: true,
      join: { kind: 'none', packages: [], files: [], cloudConfig: undefined, proxy: undefined },
    },
    ...overrides,
  };
}

/** Static addresses: enough for six machines. */
export const STATIC_NETWORK: PoolSettings['network'] = {
  ...aPool().network,
  v4: {
    kind: 'static',
    ranges: [{ from: '10.10.10.11', to: '10.10.10.16' }],
    prefix: 24,
    gateway: '10.10.10.1',
  },
};

export function someSettings(
  pools: readonly PoolSettings[] = [aPool()],
  overrides: Partial<FleetSettings> = {},
): FleetSettings {
  return {
    cluster: CLUSTER,
    holder: 'test',
    regions: { [REGION]: aRegion() },
    pools: Object.fromEntries(pools.map((pool) => [pool.name, pool])),
    vms: someVms(),
    backoff: { initialMs: 60_000, maxMs: 30 * 60_000 },
    lostAfterMs: 5 * 60_000,
    nodeLostAfterMs: 5 * 60_000,
    guards: { maxTotalUnreadyPercentage: 45, okTotalUnreadyCount: 3 },
    orphans: 'report',
    cloudController: false,
    namespace: 'pvescaler',
    reconcileMs: 20_000,
    busyMs: 1_000,
    ...overrides,
  };
}

/** Hand-made VMs from image `noble` or template `base`. */
export function someVms(overrides: Partial<PoolSettings> = {}): FleetSettings['vms'] {
  const pool = aPool();
  return {
    base: {
      ...pool,
      names: { prefix: 'k8s', role: undefined, suffix: 'ordinal' },
      source: { kind: 'netboot' },
      onStopped: 'ignore',
      provisionTimeoutMs: Number.POSITIVE_INFINITY,
      placement: { ...pool.placement, strategy: 'least-vms' },
      ...overrides,
    },
    images: { noble: IMAGE },
    templates: { base: { id: undefined, idByHost: {}, name: 'base' } },
  };
}
