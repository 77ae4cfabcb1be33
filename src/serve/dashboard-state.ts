// SPDX-License-Identifier: Apache-2.0
// The state that the dashboard shows, from the records, the last views of Proxmox and the last decisions.
import type { Config } from '../config/index.ts';
import type { FleetStatus, PoolStatus } from '../fleet/index.ts';
import type {
  DashboardGuest,
  DashboardHost,
  DashboardMachine,
  DashboardPlan,
  DashboardPool,
  DashboardState,
} from '../http/index.ts';
import { type Drain, formatBlockers, isDrainOver } from '../model/drain.ts';
import { addressesOf, type Machine, mayHaveVm, PHASES } from '../model/machine.ts';
import { pricePerHour } from '../pools/index.ts';
import type { RegionView } from '../ports/hypervisor.ts';
import type { JournalRecord } from '../ports/journal.ts';
import type { ScalingStatus } from './front-end.ts';
import type { History } from './history.ts';

export interface StateInput {
  readonly config: Config;
  readonly version: string;
  readonly now: number;
  readonly isDriver: boolean;
  readonly problems: readonly string[];
  readonly status: FleetStatus;
  readonly views: readonly RegionView[];
  readonly scaling: ScalingStatus | undefined;
  /** Oldest first. */
  readonly journal: readonly JournalRecord[];
  readonly history: History;
}

/** A page shows no more of each. */
const MAX_PENDING = 500;
const MAX_REFUSALS = 200;
const MAX_TIMES = 300;
const MAX_OVER_MACHINES = 50;

export function dashboardState(input: StateInput): DashboardState {
  const { config, status, scaling, journal, history } = input;
  const { plan, plans = [] } = scaling ?? {};
  return {
    at: input.now,
    version: input.version,
    mode: config.mode,
    ...(config.cluster.name !== undefined && { cluster: config.cluster.name }),
    isDriver: input.isDriver,
    ...(status.driver !== undefined && { driver: status.driver }),
    problems: [...input.problems],
    hasActions: config.http.dashboardTokenFile !== undefined,
    hosts: input.views.flatMap((view) => view.hosts.map((host) => hostOf(input, view, host))),
    pools: poolsOf(input),
    machines: machinesOf(input),
    pending: pendingOf(scaling),
    ...(plan !== undefined && { plan: planOf(plan) }),
    plans: plans.map(planOf),
    journal: journal.toReversed().map(({ sequence, at, kind, reason, message, subject }) => ({
      sequence,
      at,
      kind,
      reason,
      message,
      subject: { ...subject },
    })),
    samples: [...history.samples],
    timesToReady: timesToReady(status.machines),
  };
}

function hostOf(
  { config, status }: StateInput,
  { region, vms, containers }: RegionView,
  host: RegionView['hosts'][number],
): DashboardHost {
  const pools = config.pools.filter(({ regions }) => regions.includes(region));
  const machines = new Map(
    status.machines
      .filter(({ phase, placement }) => mayHaveVm(phase) && placement?.region === region)
      .map((machine) => [machine.placement?.vmId, machine.id]),
  );
  const guests: readonly DashboardGuest[] = [
    ...vms
      .filter((vm) => vm.host === host.name && !vm.isTemplate)
      .map((vm) => {
        const machine = machines.get(vm.vmId);
        return {
          vmId: vm.vmId,
          ...(vm.name !== undefined && { name: vm.name }),
          ...(machine === undefined
            ? { kind: 'vm' as const }
            : { kind: 'machine' as const, machine }),
          isRunning: vm.power === 'running',
          cpus: vm.cpus ?? 0,
          memoryBytes: vm.memoryBytes ?? 0,
        };
      }),
    ...containers
      .filter((container) => container.host === host.name && !container.isTemplate)
      .map(({ vmId, power, cpus, memoryBytes }) => ({
        vmId,
        kind: 'container' as const,
        isRunning: power === 'running',
        cpus: cpus ?? 0,
        memoryBytes: memoryBytes ?? 0,
      })),
  ];
  return {
    region,
    name: host.name,
    isOnline: host.online,
    cpus: host.cpus,
    memoryBytes: host.memoryBytes,
    reservedBytes: Math.max(0, ...pools.map(({ placement }) => placement.memoryReserveBytes)),
    cpuOvercommit: Math.max(1, ...pools.map(({ placement }) => placement.cpuOvercommit)),
    guests: guests.toSorted((a, b) => a.vmId - b.vmId),
  };
}

function poolsOf(input: StateInput): DashboardPool[] {
  const { status, history } = input;
  const prices = pricesOf(input.config, status.machines);
  return [
    ...status.pools.map((pool) => {
      const price = prices.get(pool.name);
      const problem = problemOf(pool);
      return {
        name: pool.name,
        min: pool.limits.min,
        max: pool.limits.max,
        target: pool.target,
        ready: pool.ready,
        failed: pool.failed,
        leaving: pool.deleting,
        isInConfig: true,
        ...(problem !== undefined && { problem }),
        ...(pool.pause !== undefined && { pausedUntil: pool.pause.until }),
        ...(pool.backoff !== undefined && { backedOffUntil: pool.backoff.until }),
        ...(price !== undefined && {
          pricePerHour: price,
          costToday: history.costToday(pool.name),
        }),
      };
    }),
    ...status.removedPools.map(({ name, machines }) => ({
      name,
      min: 0,
      max: 0,
      target: machines.length,
      ready: 0,
      failed: 0,
      leaving: 0,
      isInConfig: false,
      problem: `not in the config any more; pvescaler pool delete ${name} deletes its machines`,
    })),
  ];
}

function problemOf({
  name,
  limits,
  target,
  atLimit,
  pause,
  backoff,
  lost,
  missing,
  unread,
}: PoolStatus): string | undefined {
  const problems = [
    ...(pause === undefined ? [] : [`paused: ${pause.reason}`]),
    ...(backoff === undefined ? [] : [`backed off: ${backoff.message}`]),
    ...(lost === undefined
      ? []
      : [`${lost.machines.length} seem lost; pvescaler pool confirm-lost ${name} deletes them`]),
    ...(atLimit === undefined || target >= limits.max ? [] : [atLimit]),
    ...(missing === 0 ? [] : [`${missing} without their VM`]),
    ...Object.entries(unread).map(([region, why]) => `region ${region} is not read: ${why}`),
  ];
  return problems.length === 0 ? undefined : problems.join('; ');
}

/** Per hour, of the machines of each pool that may have a VM; only for pools with a price. */
export function pricesOf(
  { pools, pricing }: Pick<Config, 'pools' | 'pricing'>,
  machines: readonly Machine[],
): ReadonlyMap<string, number> {
  const isPriced = (own?: number) =>
    own !== undefined || pricing.vcpuHour > 0 || pricing.memoryGiBHour > 0;
  return new Map(
    pools
      .filter((pool) => isPriced(pool.pricePerHour))
      .map((pool) => [
        pool.name,
        machines
          .filter((machine) => machine.pool === pool.name && mayHaveVm(machine.phase))
          .reduce((sum, { size }) => sum + pricePerHour(pool, size, pricing), 0),
      ]),
  );
}

function machinesOf({ config, status }: StateInput): DashboardMachine[] {
  const drains = new Map(status.drains.map((drain) => [drain.machine, drain]));
  const isOver = ({ phase }: Machine) => phase === 'gone' || phase === 'failed';
  const over = status.machines
    .filter(isOver)
    .toSorted((a, b) => b.phaseSince - a.phaseSince)
    .slice(0, MAX_OVER_MACHINES);
  return [...status.machines.filter((machine) => !isOver(machine)), ...over].map((machine) =>
    machineOf(config, machine, drains.get(machine.id)),
  );
}

function machineOf(config: Config, machine: Machine, drain: Drain | undefined): DashboardMachine {
  const { id, pool, phase, size, nodeName, failure } = machine;
  const drainText = drain === undefined ? undefined : describeDrain(drain, phase);
  return {
    id,
    pool,
    phase,
    phases: phasesOf(machine),
    addresses: [...addressesOf(machine)],
    cpu: size.cpu,
    memoryBytes: size.memoryBytes,
    ...placeOf(config, machine),
    ...(nodeName !== undefined && { node: nodeName }),
    ...(failure !== undefined && { failure: failure.message }),
    ...(drainText !== undefined && { drain: drainText }),
  };
}

function placeOf({ regions }: Config, { placement, phase }: Machine): Partial<DashboardMachine> {
  if (placement === undefined) return {};
  const { name, region, host, vmId } = placement;
  const [endpoint] = mayHaveVm(phase) ? (regions[region]?.endpoints ?? []) : [];
  const url = endpoint === undefined ? {} : { url: `${endpoint}/#v1:0:=qemu%2F${vmId}` };
  return { name, region, host, vmId, ...url };
}

function describeDrain(drain: Drain, phase: Machine['phase']): string | undefined {
  if (drain.undo !== undefined) return `not drained: ${drain.undo.message}`;
  if (phase !== 'draining' || isDrainOver(drain)) return undefined;
  const blockers = formatBlockers(drain.blockedBy);
  return blockers === '' ? drain.reason : `${drain.reason}; waiting for ${blockers}`;
}

function phasesOf({ requestedAt, phaseTimes, phase, phaseSince }: Machine) {
  const times = { requested: requestedAt, ...phaseTimes, [phase]: phaseSince };
  return PHASES.flatMap((name) => {
    const at: number | undefined = times[name];
    return at === undefined ? [] : [{ phase: name, at }];
  }).toSorted((a, b) => a.at - b.at);
}

function pendingOf(scaling: ScalingStatus | undefined): DashboardState['pending'] {
  const { plan } = scaling ?? {};
  if (plan === undefined) return [];
  const created = plan.steps.flatMap((step) =>
    step.kind === 'create'
      ? step.machines.flatMap(({ pods }) => pods.map((pod) => ({ pod, pool: step.pool })))
      : [],
  );
  return [
    ...plan.refusals
      .filter(({ subject }) => subject.kind === 'pod')
      .map(({ subject, reason }) => ({ name: subject.name, reason })),
    ...created.map(({ pod, pool }) => ({
      name: `${pod.namespace}/${pod.name}`,
      where: `a new machine of pool ${pool}`,
    })),
    ...plan.placements.map(({ pod, node, on }) => ({
      name: `${pod.namespace}/${pod.name}`,
      where: on === 'provisioning' ? `${node}, which is being provisioned` : node,
    })),
  ].slice(0, MAX_PENDING);
}

function planOf({ at, steps, refusals }: NonNullable<ScalingStatus['plan']>): DashboardPlan {
  return {
    at,
    steps: steps.map(({ kind, pool, reason }) => ({ kind, pool, reason })),
    refusals: refusals.slice(0, MAX_REFUSALS).map(({ subject, code, reason }) => ({
      subject: `${subject.kind} ${subject.name}`.trim(),
      code,
      reason,
    })),
  };
}

function timesToReady(machines: readonly Machine[]): DashboardState['timesToReady'] {
  return machines
    .flatMap(({ pool, requestedAt, phaseTimes }) => {
      const at = phaseTimes?.ready;
      return at === undefined ? [] : [{ at, pool, seconds: (at - requestedAt) / 1_000 }];
    })
    .toSorted((a, b) => a.at - b.at)
    .slice(-MAX_TIMES);
}
