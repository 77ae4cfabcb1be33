// SPDX-License-Identifier: Apache-2.0
// What the engine is told, from what the config says.
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
import { defaultSize } from './machine-size.ts';

export interface SettingsExtras {
  readonly cluster: string;
  readonly holder: string;
  /** By image name, where the config names a list of checksums instead of one. */
  readonly checksums: Readonly<Record<string, NonNullable<ImageSettings['checksum']>>>;
  /** Keys of files that the config names, beside those in the config itself. */
  readonly publicKeys: readonly string[];
  readonly joins: JoinsByKind;
}

/** Between rounds while something is under way. */
const BUSY_MS = 500;
/** Longer than the autoscaler takes to look again, so that a place that comes free in between is used. */
const UNPLACED_MS = 30_000;

export function fleetSettings(config: Config, extras: SettingsExtras): FleetSettings {
  return {
    cluster: extras.cluster,
    holder: extras.holder,
    regions: Object.fromEntries(
      Object.entries(config.regions).map(([name, region]) => [name, regionSettings(region)]),
    ),
    pools: Object.fromEntries(
      config.pools.map((pool) => [pool.name, poolSettings(pool, config, extras)]),
    ),
    backoff: config.guards.backoff,
    lostAfterMs: config.cleanup.lostAfterMs,
    nodeLostAfterMs: config.cleanup.lostAfterMs,
    orphans: config.cleanup.orphans,
    cloudController: config.cluster.cloudController,
    namespace: config.cluster.namespace,
    // The Cluster Autoscaler would rather grow another pool than wait.
    unplacedTimeoutMs: config.mode === 'externalgrpc' ? UNPLACED_MS : undefined,
    maxRequestMs: longestRequestMs(config),
    reconcileMs: reconcileMs(config),
    busyMs: BUSY_MS,
  };
}

/** The Cluster Autoscaler is offered room on what was seen within 45 s, and nothing on what is older than a minute. */
const RECONCILE_AT_MOST_MS = 30_000;

function reconcileMs({ mode, intervals }: Config): number {
  return mode === 'externalgrpc'
    ? Math.min(intervals.reconcileMs, RECONCILE_AT_MOST_MS)
    : intervals.reconcileMs;
}

/** A second more: who gives up does so a little late. */
function longestRequestMs({ regions }: Config): number {
  return Math.max(0, ...Object.values(regions).map((one) => one.requestTimeoutMs)) + 1_000;
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

/** Whether its machines become Nodes. */
export function joins(pool: Pick<PoolConfig, 'join'>): boolean {
  return pool.join !== 'none';
}

function poolSettings(pool: PoolConfig, config: Config, extras: SettingsExtras): PoolSettings {
  const { min, ...limits } = pool.limits;
  return {
    joins: joins(pool),
    groupLabel: pool.groupLabel,
    registrationTimeoutMs: pool.registrationTimeoutMs,
    name: pool.name,
    regions: pool.regions,
    source: sourceOf(pool, config, extras),
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
    seed: pool.from.kind === 'netboot' ? undefined : seedOf(pool, config, extras),
  };
}

function instanceTypes({ size }: PoolConfig): PoolSettings['instanceTypes'] {
  if (size.kind === 'span') return [];
  return size.sizes.flatMap(({ name, ...one }) => (name === undefined ? [] : [{ name, ...one }]));
}

function sourceOf({ from }: PoolConfig, config: Config, extras: SettingsExtras): SourceSettings {
  if (from.kind === 'netboot') return { kind: 'netboot' };
  if (from.kind === 'image') {
    const image = config.images[from.image];
    if (image === undefined) throw new Bug('BUG', `image ${from.image} passed the checks`);
    const { url, format, verifyCertificates } = image;
    const checksum = image.checksum ?? extras.checksums[from.image];
    return { kind: 'image', url, format, verifyCertificates, checksum };
  }
  const template = config.templates[from.template];
  if (template === undefined) throw new Bug('BUG', `template ${from.template} passed the checks`);
  const { id, idByHost, name } = template;
  return { kind: 'template', id, idByHost, name, clone: from.clone };
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

function seedOf(pool: PoolConfig, config: Config, extras: SettingsExtras): SeedSettings {
  const { groupLabel, taints, architecture, gpu } = pool;
  const labels = gpu === undefined ? pool.labels : { [config.gpu.label]: gpu.type, ...pool.labels };
  return {
    registration: { labels, groupLabel, taints, architecture },
    login: {
      user: config.ssh.user,
      publicKeys: [...config.ssh.publicKeys, ...extras.publicKeys],
    },
    // A template is built with everything in it; an image has to be completed at the first boot.
    preinstalled: pool.from.kind === 'template',
    join: (pool.join === 'none' ? undefined : extras.joins[pool.join]) ?? NO_JOIN,
  };
}
