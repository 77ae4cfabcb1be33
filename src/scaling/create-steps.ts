// SPDX-License-Identifier: Apache-2.0
// Steps that add machines: for pending pods, for the minimum of a schedule, instead of several others. And those that cancel
// requests of machines.

import { formatCount } from '../model/format-text.ts';
import type { MachineSize } from '../model/machine.ts';
import { countAllowed } from '../pools/index.ts';
import type { PlannedMachine } from '../scheduling/index.ts';
import { describePods, describeSize, nameOf } from './describe.ts';
import { findPlaceRefusal, isMember, isStaying } from './expected-nodes.ts';
import { hostRelevance } from './host-rules.ts';
import type { ScalingHost, ScalingInput, ScalingMachine } from './input.ts';
import type { CancelStep, CreateStep, PlannedPods } from './plan.ts';
import { hostKey, type PoolState, sizeOfCapacity } from './pool-offers.ts';
import type { Replacement } from './replacement-search.ts';
import { comparePods, podsOfMachine, type ScaleUp } from './scale-up.ts';

/**
 * One step per pool, size and host, in the order in which their first machines were planned. Machines that need a
 * certain host come first, so that the others do not take its capacity.
 */
export function createSteps(
  input: ScalingInput,
  machines: readonly PlannedMachine[],
): readonly CreateStep[] {
  if (machines.length === 0) return [];
  const isTight = hasTightHost(input, machines);
  const isRelevant = hostRelevance(input);
  const isBound = (machine: PlannedMachine): boolean =>
    machine.domain !== '' && (isTight || machine.pods.some(isRelevant));
  const groups = Map.groupBy(machines, (machine) => {
    const { cpu, memoryBytes, diskBytes } = sizeOfCapacity(machine.size.capacity);
    return `${machine.pool} ${cpu} ${memoryBytes} ${diskBytes} ${isBound(machine) ? machine.domain : ''}`;
  });
  const steps = [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first === undefined ? [] : [createStep(first, group, isBound(first))];
  });
  return [
    ...steps.filter(({ host }) => host !== undefined),
    ...steps.filter(({ host }) => host === undefined),
  ];
}

/**
 * Whether a host is so full after the plan that machines on other hosts than planned might leave no place for the rest.
 * Otherwise the fleet chooses the hosts, by the strategy of the pool.
 */
function hasTightHost(
  { hosts, pools }: ScalingInput,
  machines: readonly PlannedMachine[],
): boolean {
  const overhead = Math.max(0, ...pools.map(({ config }) => config.memoryOverheadBytes));
  const largest = (amount: (machine: PlannedMachine) => number): number =>
    machines.reduce((most, machine) => Math.max(most, amount(machine)), 0);
  const amounts = [
    [({ size }: PlannedMachine) => size.capacity.cpuMilli / 1_000, 'cpus'],
    [({ size }: PlannedMachine) => size.capacity.memoryBytes + overhead, 'memoryBytes'],
    [({ size }: PlannedMachine) => size.capacity.ephemeralStorageBytes, 'diskBytes'],
  ] as const;
  const byHost = Map.groupBy(machines, ({ domain }) => domain);
  return hosts.some((host) => {
    const placed = byHost.get(hostKey(host)) ?? [];
    const rivals = findRivals(host, { hosts, machines, placed });
    return placed.some(({ pool }) =>
      amounts.some(([amount, field]) => {
        const sum = (ones: readonly PlannedMachine[]): number =>
          ones.reduce((total, machine) => total + amount(machine), 0);
        const left = (host.pools[pool]?.[field] ?? 0) - sum(placed);
        return left < Math.max(largest(amount), sum(rivals));
      }),
    );
  });
}

/** Machines planned for other hosts that may be placed on this one, although those planned for it cannot use theirs. */
function findRivals(
  host: ScalingHost,
  {
    hosts,
    machines,
    placed,
  }: {
    readonly hosts: readonly ScalingHost[];
    readonly machines: readonly PlannedMachine[];
    readonly placed: readonly PlannedMachine[];
  },
): readonly PlannedMachine[] {
  const pools = [...new Set(placed.map(({ pool }) => pool))];
  const exclusive = new Set(
    hosts.filter((other) => pools.some((pool) => !isUsable(other, pool))).map(hostKey),
  );
  return machines.filter(({ pool, domain }) => exclusive.has(domain) && isUsable(host, pool));
}

function isUsable({ pools }: ScalingHost, pool: string): boolean {
  const capacity = pools[pool];
  return capacity !== undefined && capacity.refusal === undefined;
}

function createStep(
  first: PlannedMachine,
  group: readonly PlannedMachine[],
  isBound: boolean,
): CreateStep {
  const size = sizeOfCapacity(first.size.capacity);
  const pods = group.flatMap(podsOfMachine).toSorted(comparePods);
  const count = formatCount(group.length, 'machine');
  const what = `${count} of pool ${first.pool} (${describeSize(size)})`;
  const [region, ...host] = first.domain.split('/');
  return {
    kind: 'create',
    pool: first.pool,
    size,
    ...(isNamed(first) && { sizeName: first.size.name }),
    ...(isBound && { region, host: host.join('/') }),
    machines: group.map((machine) => ({ pods: podsOfMachine(machine).map(nameOf) })),
    reason:
      pods.length === 0
        ? `${what} as headroom`
        : `${what} for ${describePods(pods)}, that ${pods.length === 1 ? 'fits' : 'fit'} on no node`,
    facts: { machines: group.length, pods: pods.length },
  };
}

/** The pods of these machines are running: they are not assigned to them. */
export function replaceSteps(
  input: ScalingInput,
  { machines, replaced }: Replacement,
): readonly CreateStep[] {
  const replaces = replaced.map(({ machine }) => machine.id);
  const names = replaced.map(({ node }) => node.name);
  return createSteps(input, machines).map((step) => ({
    ...step,
    machines: step.machines.map(() => ({ pods: [] })),
    replaces,
    reason: `${formatCount(step.machines.length, 'machine')} of pool ${step.pool} (${describeSize(step.size)})${beside(machines.length - step.machines.length)} instead of ${replaced.length} that cannot be emptied one by one: nodes ${names.join(', ')}`,
    facts: { machines: machines.length, replaced: replaced.length },
  }));
}

/** Machines that other steps create. */
function beside(count: number): string {
  return count === 0 ? '' : ` and ${count} of other sizes`;
}

/** Sizes without a name are numbered. */
function isNamed({ size }: PlannedMachine): boolean {
  return size.name !== '' && !/^\d+$/.test(size.name);
}

/** The fleet keeps `limits.min`; a schedule may require more. */
export function minimumSteps(
  input: ScalingInput,
  states: ReadonlyMap<string, PoolState>,
  { machines }: ScaleUp,
): readonly CreateStep[] {
  return [...states.values()].flatMap(({ pool, limits, members, exclusion }) => {
    const { config } = pool;
    if (limits.schedule === undefined || limits.min <= config.limits.min) return [];
    const planned = machines.filter((machine) => machine.pool === config.name);
    const lacking = limits.min - members - planned.length;
    // A region that cannot be read may have machines without a record.
    const isUnread = config.regions.some((region) => input.unreadRegions?.[region] !== undefined);
    if (lacking <= 0 || exclusion !== undefined || isUnread) return [];
    const sizes = [
      ...input.machines.filter((one) => one.pool === config.name && isMember(one)),
      ...planned.map(({ size }) => ({ size: sizeOfCapacity(size.capacity) })),
    ];
    const { size } = config;
    const count = Math.min(
      countAllowed(
        { ...config, limits: { ...config.limits, max: limits.max } },
        { members: sizes.map((one) => asMember(one.size)), count: lacking, size },
      ),
      config.scaleUp.batchSize,
    );
    if (count === 0) return [];
    const what = `${formatCount(count, 'machine')} of pool ${config.name} (${describeSize(size)})`;
    return [
      {
        kind: 'create' as const,
        pool: config.name,
        size,
        ...(config.instanceType !== undefined && { sizeName: config.instanceType }),
        machines: Array.from({ length: count }, (): PlannedPods => ({ pods: [] })),
        reason: `${what}: schedule ${limits.schedule} keeps at least ${limits.min}, there are ${members + planned.length}`,
        facts: { machines: count, min: limits.min, members },
      },
    ];
  });
}

type Member = Parameters<typeof countAllowed>[1]['members'][number];

/** Only the size counts. */
function asMember(size: MachineSize): Member {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the id is not read
  return { id: '' as Member['id'], phase: undefined, requestedAt: 0, size };
}

/** Requests that wait for a place, although no pod waits for a machine of the pool. */
export function cancelSteps(
  input: ScalingInput,
  states: ReadonlyMap<string, PoolState>,
  { unplaced }: ScaleUp,
): readonly CancelStep[] {
  const wanted = new Set(
    unplaced.flatMap(({ refusals }) =>
      refusals.filter(({ reasons }) => reasons.length === 0).map(({ pool }) => pool),
    ),
  );
  const left = new Map([...states].map(([name, { members }]) => [name, members]));
  return input.machines.flatMap((machine) => {
    const refusal = isStaying(machine) ? findPlaceRefusal(machine, input) : undefined;
    const members = left.get(machine.pool) ?? 0;
    const min = states.get(machine.pool)?.limits.min ?? 0;
    if (refusal === undefined || members <= min || wanted.has(machine.pool)) return [];
    left.set(machine.pool, members - 1);
    return [cancelStep(machine, refusal)];
  });
}

function cancelStep({ id, pool }: ScalingMachine, refusal: string): CancelStep {
  return {
    kind: 'cancel',
    pool,
    machine: id,
    reason: `machine ${id} of pool ${pool} has no place (${refusal}), and no pod needs it any more`,
    facts: {},
  };
}
