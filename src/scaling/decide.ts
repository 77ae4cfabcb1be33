// SPDX-License-Identifier: Apache-2.0
// One decision: first the machines that pending pods need, then, if none is needed, the machines that are not.

import { formatAge, formatCount } from '../model/format-text.ts';
import type { MachineSize } from '../model/machine.ts';
import { type Pod, podKey } from '../model/pod.ts';
import { countAllowed } from '../pools/index.ts';
import type { PlannedMachine } from '../scheduling/index.ts';
import { judgeNewMachines, type PoolPauseRequest } from './breaker.ts';
import { type Cause, describePods, describeSize, describeUnplaced } from './describe.ts';
import { findPlaceRefusal, isMember, isStaying } from './expected-nodes.ts';
import { isPlaceholder } from './headroom.ts';
import type { ScalingHost, ScalingInput, ScalingMachine } from './input.ts';
import type { ScalingMemory } from './memory.ts';
import type {
  CancelStep,
  CreateStep,
  Decision,
  PendingPlacement,
  PlannedPods,
  Refusal,
  Step,
} from './plan.ts';
import { hostKey, type PoolState, poolStates, sizeOfCapacity } from './pool-offers.ts';
import {
  findReplacement,
  followReplacement,
  isReplacementDue,
  nextSearchAt,
  type Replacement,
} from './replacement.ts';
import { type ScaleDown, scaleDown } from './scale-down.ts';
import { comparePods, isHostRelevant, podsOfMachine, type ScaleUp, scaleUp } from './scale-up.ts';
import { digestOf } from './snapshot-digest.ts';

export function decide(observed: ScalingInput): Decision {
  const verdict = judgeNewMachines(observed);
  const followed = { ...observed, memory: { ...observed.memory, ...followReplacement(observed) } };
  const input = withPauses(followed, verdict.pauses);
  const states = poolStates(input);
  const up = scaleUp(input, states);
  const added = [...createSteps(input, up), ...minimumSteps(input, states, up)];
  const down = scaleDown(input, states, up);
  const refusals = [...scaleUpRefusals(input, states, up), ...down.refusals];
  const usual: readonly Step[] = [...added, ...cancelSteps(input, states, up), ...down.steps];
  const isSearched = usual.length === 0 && isReplacementDue(input, { up, down });
  const replacement = isSearched ? findReplacement(input, states, { up, down }) : undefined;
  const steps = replacement === undefined ? usual : replaceSteps(input, replacement);
  return {
    plan: {
      at: input.now,
      snapshotDigest: digestOf(input),
      steps,
      refusals,
      placements: placementsOf(up),
      counts: countsOf(input, up, down),
      nextAt: nextAt(input, { states, up, down, steps, refusals }),
    },
    memory: {
      ...nextMemory(input, down),
      trials: verdict.trials,
      streaks: verdict.streaks,
      ...(isSearched && { replacementAt: nextSearchAt(input) }),
    },
    pauses: verdict.pauses,
  };
}

/** A pool that is paused by this decision does not grow by it. */
function withPauses(input: ScalingInput, pauses: readonly PoolPauseRequest[]): ScalingInput {
  if (pauses.length === 0) return input;
  const byPool = new Map(pauses.map((pause) => [pause.pool, pause]));
  return {
    ...input,
    pools: input.pools.map((pool) => {
      const pause = byPool.get(pool.config.name);
      if (pause === undefined || pool.pause !== undefined) return pool;
      return { ...pool, pause: { until: pause.until, message: pause.reason } };
    }),
  };
}

// Steps

/**
 * One step per pool, size and host, in the order in which their first machines were planned. Machines that need a
 * certain host come first, so that the others do not take its capacity.
 */
function createSteps(
  input: ScalingInput,
  { machines }: Pick<ScaleUp, 'machines'>,
): readonly CreateStep[] {
  const isTight = hasTightHost(input, machines);
  const isBound = (machine: PlannedMachine): boolean =>
    machine.domain !== '' && (isTight || machine.pods.some(isHostRelevant));
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
function replaceSteps(
  input: ScalingInput,
  { machines, replaced }: Replacement,
): readonly CreateStep[] {
  const replaces = replaced.map(({ machine }) => machine.id);
  const names = replaced.map(({ node }) => node.name);
  return createSteps(input, { machines }).map((step) => ({
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
function minimumSteps(
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
function cancelSteps(
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

// Refusals

function scaleUpRefusals(
  input: ScalingInput,
  states: ReadonlyMap<string, PoolState>,
  up: ScaleUp,
): readonly Refusal[] {
  const causes = new Map<string, Refusal>();
  const pods = unplacedRefusals(states, up, (cause) => {
    causes.set(`${cause.subject.kind} ${cause.subject.name} ${cause.code} ${cause.reason}`, cause);
  });
  for (const { pool, exclusion } of states.values()) {
    if (exclusion === undefined || !pool.config.joins) continue;
    const { code, reason, facts } = exclusion;
    const subject = { kind: 'pool' as const, name: pool.config.name };
    causes.set(`pool ${subject.name} ${code} ${reason}`, { subject, code, reason, facts });
  }
  return [
    ...causes.values(),
    ...unreadRegions(input),
    ...unusableHosts(input),
    ...pods,
    ...waitingPods(input, up),
  ];
}

function unreadRegions({ unreadRegions: regions = {} }: ScalingInput): readonly Refusal[] {
  return Object.entries(regions).map(([region, why]) => ({
    subject: { kind: 'host', name: region },
    code: 'RegionUnread',
    reason: `region ${region} cannot be read, so it gets and loses no machine: ${why}`,
    facts: {},
  }));
}

function unplacedRefusals(
  states: ReadonlyMap<string, PoolState>,
  { unplaced }: ScaleUp,
  onCause: (cause: Cause) => void,
): readonly Refusal[] {
  // Pods with equal requirements share their reasons.
  const known = new Map<unknown, ReturnType<typeof describeUnplaced>>();
  return unplaced.map(({ pod, refusals }) => {
    const described = known.get(refusals) ?? describeUnplaced(refusals, states);
    if (!known.has(refusals)) for (const cause of described.causes) onCause(cause);
    known.set(refusals, described);
    const { code, reason, causes } = described;
    if (isPlaceholder(pod)) {
      const name = Object.values(pod.nodeSelector)[0] ?? '';
      return {
        subject: { kind: 'pool', name },
        code: 'PoolHeadroomUnmet',
        reason: `pool ${name} has less headroom than configured: ${reason}`,
        facts: {},
      };
    }
    const name = podKey(pod);
    const verb = code === 'PodWaitsForLimit' ? 'waits' : 'fits no pool';
    const facts = { pools: refusals.length, limits: causes.length };
    return {
      subject: { kind: 'pod', name },
      code,
      reason: `pod ${name} ${verb}: ${reason}`,
      facts,
    };
  });
}

function unusableHosts({ hosts }: ScalingInput): readonly Refusal[] {
  return hosts.flatMap((host) =>
    Object.entries(host.pools).flatMap(([pool, { refusal }]) =>
      refusal === undefined
        ? []
        : [
            {
              subject: { kind: 'host' as const, name: hostKey(host) },
              code: 'HostUnusable' as const,
              reason: `pool ${pool} refused: ${refusal.message}`,
              facts: { pool, hostCode: refusal.code },
            },
          ],
    ),
  );
}

function waitingPods({ now, settings }: ScalingInput, up: ScaleUp): readonly Refusal[] {
  const tooNew = up.tooNew.map((pod): Refusal => {
    const ageMs = now - pod.createdAt;
    return {
      subject: { kind: 'pod', name: podKey(pod) },
      code: 'PodTooNew',
      reason: `pod ${podKey(pod)} has been pending for ${formatAge(ageMs)}, of ${formatAge(settings.newPodDelayMs)} (autoscaler.newPodDelay)`,
      facts: { ageMs, newPodDelayMs: settings.newPodDelayMs },
    };
  });
  const skipped = up.skipped.flatMap(({ pod, reason }): readonly Refusal[] => {
    const subject = { kind: 'pod' as const, name: podKey(pod) };
    if (reason === 'gated')
      return [
        {
          subject,
          code: 'PodGated',
          reason: `pod ${subject.name} has scheduling gates`,
          facts: {},
        },
      ];
    if (reason !== 'expendable') return [];
    const { priority } = pod;
    return [
      {
        subject,
        code: 'PodExpendable',
        reason: `pod ${subject.name} has priority ${priority}, below autoscaler.expendablePriority ${settings.expendablePriority}`,
        facts: { priority, expendablePriority: settings.expendablePriority },
      },
    ];
  });
  return [...tooNew, ...skipped];
}

// The rest of the plan

function placementsOf({ placements, expected }: ScaleUp): readonly PendingPlacement[] {
  const provisioning = new Set(expected.map(({ node }) => node.name));
  return placements
    .filter(({ pod }) => !isPlaceholder(pod))
    .map(({ pod, node, isNominated }): PendingPlacement => {
      const on = provisioning.has(node) ? 'provisioning' : 'node';
      return { pod: nameOf(pod), node, on: isNominated ? 'nominated' : on };
    });
}

function countsOf(input: ScalingInput, up: ScaleUp, down: ScaleDown): Decision['plan']['counts'] {
  const placements = placementsOf(up);
  const provisioning = placements.filter(({ on }) => on === 'provisioning').length;
  return {
    nodes: input.snapshot.nodes.length,
    pending: input.pending.length,
    fitExisting: placements.length - provisioning,
    fitProvisioning: provisioning,
    fitNew: up.machines.reduce((sum, machine) => sum + podsOfMachine(machine).length, 0),
    unplaced: up.unplaced.filter(({ pod }) => !isPlaceholder(pod)).length,
    unneeded: Object.keys(down.unneededSince).length,
  };
}

interface DecisionParts {
  readonly states: ReadonlyMap<string, PoolState>;
  readonly up: ScaleUp;
  readonly down: ScaleDown;
  readonly steps: readonly Step[];
  readonly refusals: readonly Refusal[];
}

const BATCH_INTERVAL_MS = 1_000;

function nextAt(input: ScalingInput, parts: DecisionParts): number | undefined {
  const { states, up, down, steps, refusals } = parts;
  // The next batch follows as soon as this one is requested.
  const isBatchFull = steps.length > 0 && refusals.some(({ code }) => code === 'PoolBatchFull');
  const times = [
    isBatchFull ? input.now + BATCH_INTERVAL_MS : undefined,
    down.nextAt,
    ...[...states.values()].flatMap(({ exclusion, limits }) => [exclusion?.until, limits.until]),
    ...up.tooNew.map(({ createdAt }) => createdAt + input.settings.newPodDelayMs),
  ].filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}

function nextMemory({ machines, memory, pending }: ScalingInput, down: ScaleDown): ScalingMemory {
  const present = new Set<string>(machines.filter(isStaying).map(({ id }) => id));
  const waiting = new Set(pending.map(({ uid }) => uid));
  const assignments = Object.entries(memory.assignments).flatMap(([id, uids]) => {
    const left = uids.filter((uid) => waiting.has(uid));
    return present.has(id) && left.length > 0 ? [[id, left] as const] : [];
  });
  return {
    unneededSince: down.unneededSince,
    assignments: Object.fromEntries(assignments),
    replacement: memory.replacement,
    replacementAt: memory.replacementAt,
  };
}

function nameOf({ namespace, name, uid }: Pod): PendingPlacement['pod'] {
  return { namespace, name, uid };
}
