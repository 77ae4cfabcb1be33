// SPDX-License-Identifier: Apache-2.0
// The fleet's settings: pools and regions of the config, plus what had to be read from files, URLs or the cluster.
import type { Config, ImageConfig, PoolConfig, TemplateConfig } from '../config/index.ts';
import type {
  FleetSettings,
  ImageSettings,
  JoinSettings,
  SeedSettings,
  SourceSettings,
  TemplateSettings,
  VmSettings,
} from '../fleet/index.ts';
import { Bug } from '../ports/errors.ts';
import type { JoinsByKind } from './join-settings.ts';

export interface ResolvedSettings {
  readonly cluster: string;
  readonly holder: string;
  /** For images with a checksumUrl. */
  readonly readChecksum: (image: ImageConfig) => Promise<NonNullable<ImageSettings['checksum']>>;
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
    clusterName: config.cluster.name,
    holder: resolved.holder,
    regions: config.regions,
    pools: Object.fromEntries(
      config.pools.map((pool) => [
        pool.name,
        {
          ...pool,
          limits: limitsOf(pool, config),
          source: resolveSource(pool, config, resolved),
          seed: resolveSeed(pool, config, resolved),
        },
      ]),
    ),
    vms: vmSettings(config, resolved),
    backoff: config.guards.backoff,
    lostAfterMs: config.cleanup.lostAfterMs,
    nodeLostAfterMs: config.cleanup.lostAfterMs,
    guards: config.guards,
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

/** The autoscaler keeps to the schedule window that is open; the fleet must accept the machines of any of them. */
function limitsOf({ limits, schedules }: PoolConfig, { mode }: Config): PoolConfig['limits'] {
  if (mode === 'externalgrpc') return limits;
  return { ...limits, max: Math.max(limits.max, ...schedules.map(({ max }) => max)) };
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

/** A person waits for a hand-made VM and decides what is to become of it: no timeout deletes it. */
function vmSettings(config: Config, resolved: ResolvedSettings): VmSettings {
  const { vms, images, templates } = config;
  return {
    base: {
      ...vms,
      provisionTimeoutMs: Number.POSITIVE_INFINITY,
      source: { kind: 'netboot' },
      seed: seedOf(vms, config, resolved),
    },
    images: mapValues(images, (image) => imageSettings(image, resolved)),
    templates: mapValues(templates, templateSettings),
  };
}

function templateSettings(template: TemplateConfig): TemplateSettings {
  const { id, idByHost, name, image, packages, sources, files, commands } = template;
  const { kubeadm, bridge, storage } = template;
  if (image === undefined) return { id, idByHost, name };
  const build = {
    image,
    bridge,
    storage,
    files,
    commands,
    kubeadm,
    // Without the agent it is unknown when the build is done.
    packages: [...new Set(['qemu-guest-agent', ...packages])],
    sources: sources.map(({ key, keyUrl, ...source }) => ({
      ...source,
      key: keyUrl === undefined ? { text: key ?? '' } : { url: keyUrl },
    })),
  };
  return { id, idByHost, name, build };
}

function mapValues<From, To>(record: Readonly<Record<string, From>>, change: (value: From) => To) {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}

function imageSettings(image: ImageConfig, resolved: ResolvedSettings): ImageSettings {
  const { url, format, verifyCertificates, checksum, checksumUrl } = image;
  const isListed = checksum === undefined && checksumUrl !== undefined;
  return {
    url,
    format,
    verifyCertificates,
    checksum,
    ...(isListed && { readChecksum: () => resolved.readChecksum(image) }),
  };
}

function resolveSource(
  { name, from }: PoolConfig,
  config: Config,
  resolved: ResolvedSettings,
): SourceSettings {
  if (from.kind === 'netboot') return { kind: 'netboot' };
  if (from.kind === 'image') {
    const image = config.images[from.image];
    if (image === undefined)
      throw new Bug('BUG', `pool ${name}: image ${from.image} is not in the checked config`);
    return { kind: 'image', ...imageSettings(image, resolved) };
  }
  const template = config.templates[from.template];
  if (template === undefined)
    throw new Bug('BUG', `pool ${name}: template ${from.template} is not in the checked config`);
  const { id, idByHost } = template;
  return {
    kind: 'template',
    key: from.template,
    id,
    idByHost,
    name: template.name,
    clone: from.clone,
  };
}

const NO_JOIN: JoinSettings = {
  kind: 'none',
  packages: [],
  files: [],
  cloudConfig: undefined,
  proxy: undefined,
};

/** Undefined with netboot: the booted system brings its own configuration. */
function resolveSeed(
  pool: PoolConfig,
  config: Config,
  resolved: ResolvedSettings,
): SeedSettings | undefined {
  return pool.from.kind === 'netboot' ? undefined : seedOf(pool, config, resolved);
}

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
