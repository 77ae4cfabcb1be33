// SPDX-License-Identifier: Apache-2.0
// Collects what a decision is made from: the cluster, the records of the fleet, and what the hosts have left.
import type { PoolConfig } from '../config/types/index.ts';
import type { FleetCapacity, FleetView, RegionCapacity } from '../fleet/index.ts';
import { isDrainOver } from '../model/drain.ts';
import type { HostRef, Machine, MachineId, MachineSize } from '../model/machine.ts';
import type {
  HostCapacity,
  ScalingHost,
  ScalingInput,
  ScalingMachine,
  ScalingMemory,
  ScalingNode,
  ScalingPool,
  ScalingSettings,
} from '../scaling/index.ts';
import type { Observed } from './observation.ts';

export interface InputSources {
  readonly observed: Observed;
  readonly pools: readonly PoolConfig[];
  readonly view: FleetView;
  readonly capacity: FleetCapacity | undefined;
  /** Why nothing may be decided about a region; undefined: its view is fresh and complete. */
  readonly staleReason: (region: string) => string | undefined;
  readonly settings: ScalingSettings;
  readonly memory: ScalingMemory;
  readonly now: number;
  readonly seed: number;
}

export function scalingInput(sources: InputSources): ScalingInput {
  const { observed, settings, memory, now, seed } = sources;
  const { snapshot, pending, disruptionBudgets, nodes, revision } = observed;
  const machines = listMachines(sources);
  return {
    now,
    revision,
    seed,
    snapshot,
    pending,
    disruptionBudgets,
    unreadyNodes: [...nodes.values()].flatMap(({ name, ready }) => (ready ? [] : [name])),
    machines,
    pools: sources.pools.map((config) => poolOf(sources, config, machines)),
    hosts: listHosts(sources, machines),
    unreadRegions: unreadRegions(sources, machines),
    settings,
    memory,
  };
}

/** Of the pools, and those where machines of a pool are that no longer uses the region. */
function unreadRegions(
  { pools, staleReason }: InputSources,
  machines: readonly ScalingMachine[],
): Readonly<Record<string, string>> {
  const regions = new Set([
    ...pools.flatMap((pool) => pool.regions),
    ...machines.flatMap(({ placement }) => placement?.region ?? []),
  ]);
  return Object.fromEntries(
    [...regions].flatMap((region) => {
      const reason = staleReason(region);
      return reason === undefined ? [] : [[region, reason] as const];
    }),
  );
}

function listMachines({
  view,
  pools,
  observed,
  capacity,
}: InputSources): readonly ScalingMachine[] {
  return pools.flatMap(({ name }) => {
    const draining = new Set(view.index.drainingOf(name).map(({ id }) => id));
    const recorded = view.index
      .machinesOf(name)
      .filter(({ phase }) => phase !== 'gone')
      .map((machine) => recordedMachine(machine, { view, observed, capacity, draining }));
    const requested = view.index
      .membersOf(name)
      .filter(({ phase }) => phase === undefined)
      .map(({ id, size, requestedAt }): ScalingMachine => {
        const host = view.index.requested(id)?.host;
        const common = { id, pool: name, size, phase: undefined, requestedAt };
        return {
          ...common,
          isBeingDeleted: false,
          isDraining: false,
          ...(host !== undefined && { requestedHost: host }),
        };
      });
    return [...recorded, ...requested];
  });
}

interface MachineSources extends Pick<InputSources, 'view' | 'observed' | 'capacity'> {
  readonly draining: ReadonlySet<MachineId>;
}

function recordedMachine(machine: Machine, sources: MachineSources): ScalingMachine {
  const { id, pool, size, phase, requestedAt, placement, requiredHost } = machine;
  const isDraining = sources.draining.has(id);
  const node = nodeOf(machine, sources.observed);
  const refusal = phase === 'requested' ? sources.capacity?.unplaced.get(id) : undefined;
  return {
    id,
    pool,
    size,
    phase,
    requestedAt,
    ...(phase === 'ready' && { readySince: machine.phaseSince }),
    isBeingDeleted:
      phase === 'deleting' || (!isDraining && sources.view.index.isDeletionRequested(id)),
    isDraining,
    ...(machine.failure !== undefined && { hasFailed: true }),
    ...(placement !== undefined && { placement }),
    ...(requiredHost !== undefined && { requestedHost: requiredHost }),
    ...(refusal !== undefined && { refusal }),
    ...(node !== undefined && { node }),
  };
}

/** A Node of the same name with another uid belongs to another machine. */
function nodeOf({ nodeName, nodeUid }: Machine, { nodes }: Observed): ScalingNode | undefined {
  const node = nodeName === undefined ? undefined : nodes.get(nodeName);
  if (node === undefined || (nodeUid !== undefined && node.uid !== nodeUid)) return undefined;
  const { name, ready, createdAt, annotations } = node;
  return { name, isReady: ready, createdAt, annotations };
}

function poolOf(
  { view, capacity }: InputSources,
  config: PoolConfig,
  machines: readonly ScalingMachine[],
): ScalingPool {
  const { name } = config;
  const state = view.pools.get(name);
  const { backoff, pause } = state ?? {};
  return {
    config,
    learned: state?.allocatable ?? {},
    ...(backoff !== undefined && { backoff }),
    ...(pause !== undefined && { pause: { until: pause.until, message: pause.reason } }),
    ...lastChanges(view, name),
    ...identitiesOf(name, capacity, machines),
  };
}

type LastChanges = Pick<ScalingPool, 'lastAddAt' | 'lastDeleteAt' | 'lastFailureAt'>;

/** From records that are kept for at least half an hour. */
function lastChanges(view: FleetView, pool: string): LastChanges {
  const machines = view.index.machinesOf(pool);
  const requested = view.index.membersOf(pool).map(({ requestedAt }) => requestedAt);
  const removed = machines
    .filter(({ phase, failure }) => isRemoved(phase) && failure === undefined)
    .map(({ phaseSince }) => phaseSince);
  const undone = machines
    .flatMap(({ id }) => view.drains.get(id) ?? [])
    .filter((drain) => isDrainOver(drain) && drain.undo?.cause === 'timed-out')
    .map(({ stateSince }) => stateSince);
  return {
    ...latest('lastAddAt', [...requested, ...machines.map(({ requestedAt }) => requestedAt)]),
    ...latest('lastDeleteAt', removed),
    ...latest('lastFailureAt', undone),
  };
}

function isRemoved(phase: Machine['phase']): boolean {
  return phase === 'deleting' || phase === 'gone';
}

function latest(key: keyof LastChanges, times: readonly number[]): LastChanges {
  return times.length === 0 ? {} : { [key]: Math.max(...times) };
}

function identitiesOf(
  pool: string,
  capacity: FleetCapacity | undefined,
  machines: readonly ScalingMachine[],
): Pick<ScalingPool, 'freeIdentities'> {
  const free = (capacity?.regions ?? []).flatMap(({ pools }) =>
    pools.filter((one) => one.pool === pool).map(({ identities }) => identities),
  );
  const [first] = free;
  if (first === undefined) return {};
  const later = laterRequests(capacity, machines).filter((machine) => machine.pool === pool).length;
  const count = free.reduce((sum, { machines: left }) => sum + left, 0);
  const reason = free.map((one) => one.reason).join('; ');
  return { freeIdentities: { machines: Math.max(0, count - later), reason } };
}

/** Machines that were requested after the capacity was computed. */
function laterRequests(
  capacity: FleetCapacity | undefined,
  machines: readonly ScalingMachine[],
): readonly ScalingMachine[] {
  return machines.filter(
    ({ id, phase, isBeingDeleted }) =>
      (phase === undefined || phase === 'requested') &&
      !isBeingDeleted &&
      capacity?.counted.has(id) !== true &&
      capacity?.unplaced.has(id) !== true,
  );
}

// Hosts

type Hosts = Map<string, { readonly ref: HostRef; readonly pools: Map<string, HostCapacity> }>;

function listHosts(
  { capacity, staleReason, pools }: InputSources,
  machines: readonly ScalingMachine[],
): readonly ScalingHost[] {
  const hosts: Hosts = new Map();
  for (const region of capacity?.regions ?? [])
    addRegion(hosts, region, staleReason(region.region));
  const overheads = new Map(
    pools.map(({ name, memoryOverheadBytes }) => [name, memoryOverheadBytes]),
  );
  for (const machine of laterRequests(capacity, machines))
    reserve(hosts, machine, overheads.get(machine.pool) ?? 0);
  return Array.from(hosts.values(), ({ ref, pools: byPool }) => ({
    region: ref.region,
    name: ref.host,
    pools: Object.fromEntries(byPool),
  }));
}

function addRegion(
  hosts: Hosts,
  { region, pools }: RegionCapacity,
  stale: string | undefined,
): void {
  for (const { pool, hosts: headrooms } of pools) {
    for (const { host, ...capacity } of headrooms) {
      const key = `${region}/${host}`;
      const known = hosts.get(key) ?? { ref: { region, host }, pools: new Map() };
      hosts.set(key, known);
      const refusal = { code: 'VIEW_STALE', message: `region ${region}: ${stale}` };
      known.pools.set(pool, stale === undefined ? capacity : { ...capacity, refusal });
    }
  }
}

/** Subtracts a machine from the host that it will probably be placed on. */
function reserve(hosts: Hosts, machine: ScalingMachine, overheadBytes: number): void {
  const { cpu, memoryBytes, diskBytes } = machine.size;
  const size = { cpu, diskBytes, memoryBytes: memoryBytes + overheadBytes };
  const { requestedHost } = machine;
  const chosen =
    requestedHost === undefined
      ? mostFree(hosts, machine.pool, size)
      : hosts.get(`${requestedHost.region}/${requestedHost.host}`);
  for (const [pool, left] of chosen?.pools ?? []) {
    chosen?.pools.set(pool, {
      ...left,
      cpus: Math.max(0, left.cpus - size.cpu),
      memoryBytes: Math.max(0, left.memoryBytes - size.memoryBytes),
      diskBytes: Math.max(0, left.diskBytes - size.diskBytes),
    });
  }
}

function mostFree(hosts: Hosts, pool: string, size: MachineSize) {
  const free = ({ pools }: { readonly pools: ReadonlyMap<string, HostCapacity> }) =>
    pools.get(pool)?.memoryBytes ?? 0;
  const [best] = [...hosts.values()]
    .filter(({ pools }) => {
      const left = pools.get(pool);
      return left !== undefined && left.refusal === undefined && fits(size, left);
    })
    .toSorted((a, b) => free(b) - free(a));
  return best;
}

function fits({ cpu, memoryBytes, diskBytes }: MachineSize, left: HostCapacity): boolean {
  return cpu <= left.cpus && memoryBytes <= left.memoryBytes && diskBytes <= left.diskBytes;
}
