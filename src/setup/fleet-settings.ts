// SPDX-License-Identifier: Apache-2.0
// The fleet's settings, from the config and from values that were read at the start.
import type { Config, PoolConfig, RegionConfig } from '../config/index.ts';
import type {
  FleetSettings,
  ImageSettings,
  JoinSettings,
  NetworkSettings,
  PoolSettings,
  RegionSettings,
  SeedSettings,
  SourceSettings,
} from '../fleet/index.ts';
import { Bug } from '../ports/errors.ts';
import type { JoinsByKind } from './join-settings.ts';
import { defaultSize } from './pool-size.ts';

export interface ResolvedSettings {
  readonly cluster: string;
  readonly holder: string;
  /** By image name, for images with a checksumUrl. */
  readonly checksums: Readonly<Record<string, NonNullable<ImageSettings['checksum']>>>;
  /** Contents of ssh.publicKeyFiles. */
  readonly publicKeys: readonly string[];
  readonly joins: JoinsByKind;
}

/** Pause between passes while a machine is in progress. */
const BUSY_MS = 500;
/** Longer than the Cluster Autoscaler's scan interval, so that capacity freed between two scans is used. */
const UNPLACED_MS = 30_000;

export function fleetSettings(config: Config, resolved: ResolvedSettings): FleetSettings {
  return {
    cluster: resolved.cluster,
    holder: resolved.holder,
    regions: Object.fromEntries(
      Object.entries(config.regions).map(([name, region]) => [name, regionSettings(region)]),
    ),
    pools: Object.fromEntries(
      config.pools.map((pool) => [pool.name, poolSettings(pool, config, resolved)]),
    ),
    backoff: config.guards.backoff,
    lostAfterMs: config.cleanup.lostAfterMs,
    nodeLostAfterMs: config.cleanup.lostAfterMs,
    orphans: config.cleanup.orphans,
    cloudController: config.cluster.cloudController,
    namespace: config.cluster.namespace,
    // The Cluster Autoscaler scales up another pool instead of waiting.
    unplacedTimeoutMs: config.mode === 'externalgrpc' ? UNPLACED_MS : undefined,
    maxRequestMs: maxRequestMs(config),
    reconcileMs: reconcileMs(config),
    busyMs: BUSY_MS,
  };
}

/** The gRPC server offers headroom from views up to 45 s old and none from views older than a minute. */
const MAX_RECONCILE_MS = 30_000;

function reconcileMs({ mode, intervals }: Config): number {
  return mode === 'externalgrpc'
    ? Math.min(intervals.reconcileMs, MAX_RECONCILE_MS)
    : intervals.reconcileMs;
}

/** One second more than the largest timeout, since a timeout fires a little late. */
function maxRequestMs({ regions }: Config): number {
  return Math.max(0, ...Object.values(regions).map((region) => region.requestTimeoutMs)) + 1_000;
}

function regionSettings(region: RegionConfig): RegionSettings {
  const { name, hosts, vmIds, storage, limits, managedTag, tags, resourcePool } = region;
  return {
    name,
    hosts,
    vmIds,
    storage,
    limits,
    tags: [managedTag, ...tags],
    resourcePool,
    taskTimeoutMs: region.taskTimeoutMs,
  };
}

/** True when its machines become Nodes. */
export function joins(pool: Pick<PoolConfig, 'join'>): boolean {
  return pool.join !== 'none';
}

function poolSettings(pool: PoolConfig, config: Config, resolved: ResolvedSettings): PoolSettings {
  const { min, ...limits } = pool.limits;
  return {
    joins: joins(pool),
    groupLabel: pool.groupLabel,
    registrationTimeoutMs: pool.registrationTimeoutMs,
    name: pool.name,
    regions: pool.regions,
    source: sourceOf(pool, config, resolved),
    size: defaultSize(pool),
    instanceTypes: instanceTypes(pool),
    memoryOverheadBytes: pool.memoryOverheadBytes,
    balloonBytes: pool.balloonBytes,
    names: pool.names,
    limits: { ...limits, min },
    network: networkOf(pool),
    disk: { ...pool.disk, storage: pool.disk.storage },
    options: optionsOf(pool),
    placement: pool.placement,
    provisionTimeoutMs: pool.provisionTimeoutMs,
    deletion: pool.deletion,
    seed: pool.from.kind === 'netboot' ? undefined : seedOf(pool, config, resolved),
  };
}

function instanceTypes({ size }: PoolConfig): PoolSettings['instanceTypes'] {
  if (size.kind === 'span') return [];
  return size.sizes.flatMap(({ name, ...amounts }) =>
    name === undefined ? [] : [{ name, ...amounts }],
  );
}

function sourceOf(
  { name, from }: PoolConfig,
  config: Config,
  resolved: ResolvedSettings,
): SourceSettings {
  if (from.kind === 'netboot') return { kind: 'netboot' };
  if (from.kind === 'image') {
    const image = config.images[from.image];
    if (image === undefined)
      throw new Bug('BUG', `pool ${name}: image ${from.image} is not in the checked config`);
    const { url, format, verifyCertificates } = image;
    const checksum = image.checksum ?? resolved.checksums[from.image];
    return { kind: 'image', url, format, verifyCertificates, checksum };
  }
  const template = config.templates[from.template];
  if (template === undefined)
    throw new Bug('BUG', `pool ${name}: template ${from.template} is not in the checked config`);
  const { id, idByHost } = template;
  return { kind: 'template', id, idByHost, name: template.name, clone: from.clone };
}

function networkOf({ network }: PoolConfig): NetworkSettings {
  return {
    interfaces: network.interfaces.map((card) => ({
      model: card.model,
      bridge: card.bridge,
      vlan: card.vlan,
      mtu: card.mtu,
      queues: card.queues === 0 ? undefined : card.queues,
      macPrefix: card.macPrefix,
      firewall: card.firewall,
    })),
    v4: network.v4,
    v6: network.v6,
    dns: network.dns,
    search: network.search,
  };
}

function optionsOf({ vmOptions, onboot }: PoolConfig): Readonly<Record<string, string>> {
  const text = (value: string | number | boolean) =>
    typeof value === 'boolean' ? String(Number(value)) : String(value);
  return {
    onboot: text(onboot),
    ...Object.fromEntries(Object.entries(vmOptions).map(([name, value]) => [name, text(value)])),
  };
}

const NO_JOIN: JoinSettings = {
  kind: 'none',
  packages: [],
  files: [],
  cloudConfig: undefined,
  proxy: undefined,
};

function seedOf(pool: PoolConfig, config: Config, resolved: ResolvedSettings): SeedSettings {
  const { groupLabel, taints, architecture, gpu } = pool;
  const labels = gpu === undefined ? pool.labels : { [config.gpu.label]: gpu.type, ...pool.labels };
  return {
    registration: { labels, groupLabel, taints, architecture },
    login: {
      user: config.ssh.user,
      publicKeys: [...config.ssh.publicKeys, ...resolved.publicKeys],
    },
    // A template contains all packages; an image needs them installed at the first boot.
    preinstalled: pool.from.kind === 'template',
    join: (pool.join === 'none' ? undefined : resolved.joins[pool.join]) ?? NO_JOIN,
  };
}
