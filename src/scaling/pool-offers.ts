// SPDX-License-Identifier: Apache-2.0
// What each pool offers to pending pods: sizes, limits and hosts, or the reason why it offers nothing now.

import { formatAge, formatCount } from '../model/format-text.ts';
import type { MachineSize } from '../model/machine.ts';
import { NO_RESOURCES, type Resources } from '../model/resources.ts';
import { pricePerHour, reservedModel, resourcePrice, sizeOfKey } from '../pools/index.ts';
import type { DomainOffer, Limits, PoolOffer, SizeOffer, SizeRange } from '../scheduling/index.ts';
import { type EffectiveLimits, effectiveLimits } from './effective-limits.ts';
import { isMember, sizedTemplate, sizeLabels, topologyLabels } from './expected-nodes.ts';
import type { HostCapacity, ScalingHost, ScalingInput, ScalingPool } from './input.ts';
import type { MergedHosts } from './merged-hosts.ts';
import type { Facts, RefusalCode } from './plan.ts';

/** Why a pool may not grow now, whatever the pods are. */
export interface PoolExclusion {
  readonly code: RefusalCode;
  readonly reason: string;
  readonly facts: Facts;
  /** When it ends. Absent: unknown. */
  readonly until?: number;
}

interface Room {
  readonly machines: number;
  readonly code: RefusalCode;
  readonly reason: string;
}

export interface PoolState {
  readonly pool: ScalingPool;
  readonly limits: EffectiveLimits;
  readonly members: number;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** How many machines may be added, and why no more. */
  readonly room: Room;
  /** How many of them by this decision. */
  readonly batch: Room;
  readonly exclusion?: PoolExclusion;
  /** Why it can use no host. Absent: it can use one. */
  readonly withoutHost?: string;
}

export function poolStates(input: ScalingInput): ReadonlyMap<string, PoolState> {
  const byPool = Map.groupBy(input.machines.filter(isMember), ({ pool }) => pool);
  return new Map(
    input.pools.map((pool) => {
      const { name } = pool.config;
      const members = byPool.get(name) ?? [];
      const limits = effectiveLimits(pool.config, input.now);
      const exclusion = findExclusion(pool, input.now);
      const withoutHost = describeNoHost(pool, input);
      const state: PoolState = {
        pool,
        limits,
        members: members.length,
        cpus: members.reduce((sum, { size }) => sum + size.cpu, 0),
        memoryBytes: members.reduce((sum, { size }) => sum + size.memoryBytes, 0),
        room: roomOf(pool, limits, members.length),
        batch: batchOf(pool),
        ...(exclusion !== undefined && { exclusion }),
        ...(withoutHost !== undefined && { withoutHost }),
      };
      return [name, state];
    }),
  );
}

/** For machines that are all requested by one decision. */
export function withinBatches(
  states: ReadonlyMap<string, PoolState>,
): ReadonlyMap<string, PoolState> {
  return new Map(
    [...states].map(([name, state]) => {
      const { room, batch } = state;
      return [name, room.machines <= batch.machines ? state : { ...state, room: batch }];
    }),
  );
}

/** How many reasons why hosts cannot be used are listed. */
const MAX_HOST_REASONS = 3;

function describeNoHost(
  { config }: ScalingPool,
  { hosts, unreadRegions = {} }: Pick<ScalingInput, 'hosts' | 'unreadRegions'>,
): string | undefined {
  const refusals = hosts.flatMap(({ region, pools }) => {
    const capacity = pools[config.name];
    return capacity === undefined ? [] : [{ region, refusal: capacity.refusal }];
  });
  if (refusals.some(({ refusal }) => refusal === undefined)) return undefined;
  const isUnread = (region: string): boolean => unreadRegions[region] !== undefined;
  const reasons = [
    ...config.regions.filter(isUnread).map((region) => `region ${region} cannot be read`),
    ...refusals.flatMap(({ region, refusal }) =>
      isUnread(region) ? [] : (refusal?.message ?? []),
    ),
  ];
  const shown = [...new Set(reasons)].slice(0, MAX_HOST_REASONS).join('; ');
  const count = formatCount(refusals.length, 'host');
  const none = refusals.length === 0 ? 'it has no host' : `it can use none of its ${count} now`;
  return shown === '' ? none : `${none}: ${shown}`;
}

function findExclusion(pool: ScalingPool, now: number): PoolExclusion | undefined {
  const { config, pause, backoff, lastAddAt } = pool;
  const { name } = config;
  if (!config.joins)
    return {
      code: 'PoolWithoutHost',
      reason: `pool ${name} refused: its machines do not join the cluster`,
      facts: {},
    };
  if (pause !== undefined && (pause.until === undefined || pause.until > now))
    return excluded('PoolPaused', `pool ${name} is paused`, { now, ...pause });
  if (backoff !== undefined && backoff.until > now)
    return excluded('PoolBackedOff', `pool ${name} backs off`, { now, ...backoff });
  const { delayAfterAddMs } = config.scaleUp;
  const until = (lastAddAt ?? -Infinity) + delayAfterAddMs;
  if (until > now)
    return excluded('PoolDelayAfterAdd', `pool ${name} waits after its last scale-up`, {
      now,
      until,
      message: `scaleUp.delayAfterAdd is ${formatAge(delayAfterAddMs)}`,
    });
  return undefined;
}

function excluded(
  code: RefusalCode,
  what: string,
  {
    now,
    until,
    message,
  }: { readonly now: number; readonly until?: number | undefined; readonly message: string },
): PoolExclusion {
  if (until === undefined)
    return { code, reason: `${what} until it is resumed: ${message}`, facts: {} };
  return {
    code,
    reason: `${what} for ${formatAge(until - now)}: ${message}`,
    facts: { until, remainingMs: until - now },
    until,
  };
}

function roomOf(
  { config, freeIdentities }: ScalingPool,
  limits: EffectiveLimits,
  members: number,
): Room {
  const { name } = config;
  const during = limits.schedule === undefined ? '' : ` during ${limits.schedule}`;
  const rooms: readonly Room[] = [
    {
      machines: limits.max - members,
      code: 'PoolAtLimit',
      reason: `pool ${name} is limited to ${formatCount(limits.max, 'machine')}${during} and has ${members}`,
    },
    {
      machines: freeIdentities?.machines ?? Infinity,
      code: 'PoolWithoutIdentity',
      reason: `pool ${name} refused: ${freeIdentities?.reason ?? ''}`,
    },
  ];
  const least = rooms.reduce((left, right) => (right.machines < left.machines ? right : left));
  return { ...least, machines: Math.max(0, least.machines) };
}

function batchOf({ config: { name, scaleUp } }: ScalingPool): Room {
  const machines = scaleUp.batchSize;
  const reason = `pool ${name} adds at most ${formatCount(machines, 'machine')} at a time`;
  return { machines, code: 'PoolBatchFull', reason };
}

/** Names a host of all regions. */
export function hostKey({ region, name }: Pick<ScalingHost, 'region' | 'name'>): string {
  return `${region}/${name}`;
}

/** Limits of a pool on a host, by pool and host, that replace those of the input. */
export type HostLimits = ReadonlyMap<string, Limits>;

export function hostLimitKey(pool: string, domain: string): string {
  return `${pool} ${domain}`;
}

/** Among hosts that cost the same, the lowest is filled first. */
export type HostOrder = (host: ScalingHost) => number;

/** Offers of all pools. One that may not grow offers no machine, so that the reasons for a pod are complete. */
export function poolOffers(
  input: ScalingInput,
  states: ReadonlyMap<string, PoolState>,
  hosts:
    | { readonly limits: HostLimits; readonly orderOf?: HostOrder }
    | { readonly merged: MergedHosts },
): readonly PoolOffer[] {
  const order = poolOrder(input);
  return input.pools.flatMap(({ config }) => {
    const state = states.get(config.name);
    if (state === undefined) return [];
    const domains =
      'merged' in hosts
        ? hosts.merged.domainsOf(config.name).map((name) => ({ name, labels: {} }))
        : domainsOf(input, state, hosts);
    return [poolOffer(input, state, { order, domains })];
  });
}

function poolOffer(
  input: ScalingInput,
  state: PoolState,
  { order, domains }: { readonly order: PoolOrder; readonly domains: readonly DomainOffer[] },
): PoolOffer {
  const { config } = state.pool;
  const { settings } = input;
  const template = sizedTemplate(state.pool, config.size, settings);
  const { 'node.kubernetes.io/instance-type': _, ...labels } = template.labels;
  const features = declaredFeatures(input, config.name);
  return {
    name: config.name,
    labels:
      config.sizes.kind === 'span'
        ? template.labels
        : { ...labels, ...ownTypeLabel(config.labels) },
    taints: template.taints,
    sizes: config.sizes.kind === 'span' ? rangeOf(state.pool, input) : sizesOf(state.pool, input),
    domains: domains.length > 0 ? domains : [WITHOUT_HOST],
    limits: limitsOf(state),
    priority: order(config.name),
    memoryOverheadBytes: config.memoryOverheadBytes,
    ...(features.length > 0 && { declaredFeatures: features }),
    ...(settings.poolChoice === 'balance' && { balance: state.members }),
  };
}

/** A label of the pool overrides that of the size. */
function ownTypeLabel(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const own = labels['node.kubernetes.io/instance-type'];
  return own === undefined ? {} : { 'node.kubernetes.io/instance-type': own };
}

function limitsOf({ pool, room, cpus, memoryBytes, exclusion }: PoolState): Limits {
  const { cpu, memoryBytes: maxMemory } = pool.config.limits;
  return {
    machines: exclusion === undefined ? room.machines : 0,
    ...(cpu > 0 && { cpuMilli: Math.max(0, cpu - cpus) * 1_000 }),
    ...(maxMemory > 0 && { memoryBytes: Math.max(0, maxMemory - memoryBytes) }),
  };
}

const GIB = 2 ** 30;

function sizesOf(pool: ScalingPool, input: ScalingInput): readonly SizeOffer[] {
  const { config } = pool;
  if (config.sizes.kind === 'span') return [];
  return config.sizes.sizes.map(({ name, ...size }, index) => ({
    name: name ?? String(index),
    capacity: capacityOf(size),
    allocatable: sizedTemplate(pool, size, input.settings).allocatable,
    labels: config.labels['node.kubernetes.io/instance-type'] === undefined ? sizeLabels(name) : {},
    ...(input.settings.poolChoice === 'cheapest' && {
      price: pricePerHour(config, size, input.settings.pricing),
    }),
    ...(input.settings.poolChoice === 'fewest' && { price: 1 }),
  }));
}

export function capacityOf(size: MachineSize): Resources {
  return {
    ...NO_RESOURCES,
    cpuMilli: size.cpu * 1_000,
    memoryBytes: size.memoryBytes,
    ephemeralStorageBytes: size.diskBytes,
  };
}

export function sizeOfCapacity(capacity: Resources): MachineSize {
  return {
    cpu: capacity.cpuMilli / 1_000,
    memoryBytes: capacity.memoryBytes,
    diskBytes: capacity.ephemeralStorageBytes,
  };
}

function rangeOf(pool: ScalingPool, input: ScalingInput): SizeRange {
  const { config, learned } = pool;
  if (config.sizes.kind !== 'span') throw new RangeError(`pool ${config.name} has no size range`);
  const { min, max, stepCpu, stepMemoryBytes } = config.sizes;
  const { fixed, share } = reservedModel(
    config,
    Object.entries(learned).flatMap(([key, allocatable]) => {
      const size = sizeOfKey(key);
      return size === undefined ? [] : [{ size, allocatable }];
    }),
  );
  // Pods and extended resources do not depend on the size.
  const { pods, extended } = sizedTemplate(pool, max, input.settings).allocatable;
  const prices = rangePrices(pool, input);
  return {
    min: capacityOf(min),
    max: { ...capacityOf(max), pods, extended },
    step: {
      ...NO_RESOURCES,
      cpuMilli: stepCpu * 1_000,
      memoryBytes: stepMemoryBytes,
      ephemeralStorageBytes: GIB,
    },
    reserved: { ...NO_RESOURCES, ...fixed },
    reservedShare: share,
    ...(prices !== undefined && { prices }),
  };
}

function rangePrices({ config }: ScalingPool, { settings }: ScalingInput): SizeRange['prices'] {
  if (settings.poolChoice !== 'cheapest') return undefined;
  const base = resourcePrice(config.size, settings.pricing);
  const factor = config.pricePerHour === undefined || base === 0 ? 1 : config.pricePerHour / base;
  return {
    perCpuMilli: (factor * settings.pricing.vcpuHour) / 1_000,
    perMemoryByte: (factor * settings.pricing.memoryGiBHour) / GIB,
  };
}

function declaredFeatures({ machines, snapshot }: ScalingInput, pool: string): readonly string[] {
  const names = new Set(
    machines.flatMap((one) => (one.pool === pool && one.phase === 'ready' ? one.node?.name : [])),
  );
  const known = snapshot.nodes.find(({ name }) => names.has(name));
  return known?.declaredFeatures ?? [];
}

function domainsOf(
  { hosts }: ScalingInput,
  { pool }: PoolState,
  {
    limits: hostLimits,
    orderOf = () => 0,
  }: { readonly limits: HostLimits; readonly orderOf?: HostOrder },
): readonly DomainOffer[] {
  const { config } = pool;
  return hosts.flatMap((host) => {
    const capacity = host.pools[config.name];
    if (capacity === undefined || capacity.refusal !== undefined) return [];
    const name = hostKey(host);
    return [
      {
        name,
        labels: topologyLabels(config, { region: host.region, host: host.name }),
        limits: hostLimits.get(hostLimitKey(config.name, name)) ?? capacityLimits(capacity),
        ...(capacity.maxCpus !== undefined && { maxCpuMilli: capacity.maxCpus * 1_000 }),
        order: orderOf(host),
      },
    ];
  });
}

/** How many pools can use the host. */
export function countPools({ pools }: ScalingHost): number {
  return Object.values(pools).filter(({ refusal }) => refusal === undefined).length;
}

/** The domain of a pool that has no host. */
export const NO_HOST = '';

/** A pool without a host that it may use still has a domain, so that pods get reasons. */
const WITHOUT_HOST: DomainOffer = { name: NO_HOST, labels: {}, limits: { machines: 0 } };

export function capacityLimits({ cpus, memoryBytes, diskBytes }: HostCapacity): Limits {
  return {
    cpuMilli: Math.max(0, cpus) * 1_000,
    memoryBytes: Math.max(0, memoryBytes),
    diskBytes: Math.max(0, diskBytes),
  };
}

/** Limits of hosts that pools share: the pool with the most lenient rules decides; each pool has its own in addition. */
export function sharedHostLimits({ hosts }: ScalingInput): ReadonlyMap<string, Limits> {
  return new Map(
    hosts.flatMap((host) => {
      const usable = Object.values(host.pools).filter(({ refusal }) => refusal === undefined);
      if (usable.length === 0) return [];
      const most = (amount: (capacity: HostCapacity) => number): number =>
        Math.max(...usable.map(amount));
      const limits = capacityLimits({
        cpus: most(({ cpus }) => cpus),
        memoryBytes: most(({ memoryBytes }) => memoryBytes),
        diskBytes: most(({ diskBytes }) => diskBytes),
      });
      return [[hostKey(host), limits] as const];
    }),
  );
}

/** Rank of a pool for `pack`: higher first. */
type PoolOrder = (pool: string) => number;

/** Beyond the number of pools, so that the configured priority decides first. */
const PRIORITY_FACTOR = 100_000;

function poolOrder({ pools, settings, seed }: ScalingInput): PoolOrder {
  const names = pools.map(({ config }) => config.name);
  const priorities = new Map(pools.map(({ config }) => [config.name, config.priority]));
  const sorted = settings.poolChoice === 'random' ? shuffle(names, seed) : names;
  const hasOrder = settings.poolChoice === 'random' || settings.poolChoice === 'priority';
  const ranks = new Map(sorted.map((name, index) => [name, hasOrder ? -index : 0]));
  return (name) => (priorities.get(name) ?? 0) * PRIORITY_FACTOR + (ranks.get(name) ?? 0);
}

/** Fisher-Yates with a linear congruential generator: only the variety matters, not the quality. */
function shuffle(names: readonly string[], seed: number): readonly string[] {
  const shuffled = [...names];
  let state = seed >>> 0;
  for (let last = shuffled.length - 1; last > 0; last -= 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const other = Math.floor((state / 2 ** 32) * (last + 1));
    [shuffled[last], shuffled[other]] = [shuffled[other] ?? '', shuffled[last] ?? ''];
  }
  return shuffled;
}
