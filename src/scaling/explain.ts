// SPDX-License-Identifier: Apache-2.0
// Explains one pod, node, pool or host from an input and the plan that was made from it.

import { formatAge, formatCount } from '../model/format-text.ts';
import { isDaemonSetPod, type Pod, podKey } from '../model/pod.ts';
import { formatReason, simulateDrain } from '../scheduling/index.ts';
import { describeSize, freeBytes } from './describe.ts';
import { effectiveLimits } from './effective-limits.ts';
import { isMember } from './expected-nodes.ts';
import type { ScalingInput, ScalingMachine } from './input.ts';
import type { Facts, Plan, PodName, Refusal, SubjectKind } from './plan.ts';
import { hostKey } from './pool-offers.ts';
import { utilizationOf } from './utilization.ts';

export interface Explanation {
  readonly subject: Refusal['subject'];
  /** Whether the input contains it. The lines of an unknown one say why it may be unknown. */
  readonly isKnown: boolean;
  readonly lines: readonly ExplanationLine[];
}

export interface ExplanationLine {
  /** What it is, what will be done, or why something is not done. */
  readonly kind: 'state' | 'step' | 'refusal';
  readonly text: string;
  readonly code?: string;
  readonly facts: Facts;
}

export interface Explained {
  readonly input: ScalingInput;
  readonly plan: Plan;
  /** Pools that are not in the config and still have machines; those are not in the input. */
  readonly removedPools?: readonly RemovedPool[];
}

interface RemovedPool {
  readonly name: string;
  readonly machines: readonly { readonly nodeName?: string }[];
}

/** The name of a pod is `namespace/name`, or a name that is unique; of a host `region/name`, or a unique name. */
export function explain(explained: Explained, kind: SubjectKind, name: string): Explanation {
  switch (kind) {
    case 'pod':
      return explainPod(explained, name);
    case 'node':
      return explainNode(explained, name);
    case 'pool':
      return explainPool(explained, name);
    case 'host':
      return explainHost(explained, name);
    case 'cluster':
      return {
        subject: { kind, name: '' },
        isKnown: true,
        lines: refusalLines(explained.plan, { kind, name: '' }),
      };
  }
}

function explainPod({ input, plan }: Explained, name: string): Explanation {
  const full = podNameOf(input, name);
  const running = full === undefined ? findRunning(input, name) : undefined;
  const subject = { kind: 'pod' as const, name: full ?? running?.name ?? name };
  if (running !== undefined) {
    const moves = plan.steps.flatMap((step) =>
      step.kind === 'drain'
        ? step.moves
            .filter(({ pod }) => keyOf(pod) === running.name)
            .map(({ to }) => stepLine(`is evicted and fits on ${to}: ${step.reason}`, step.facts))
        : [],
    );
    return {
      subject,
      isKnown: true,
      lines: [stateLine(`runs on node ${running.node}`), ...moves],
    };
  }
  if (full === undefined) return { subject, isKnown: false, lines: [] };
  const pod = input.pending.find((one) => podKey(one) === full);
  const age = pod === undefined ? 0 : input.now - pod.createdAt;
  return {
    subject,
    isKnown: true,
    lines: [
      stateLine(`has been pending for ${formatAge(age)}`, { ageMs: age }),
      ...(pod === undefined ? [] : skippedLines(pod)),
      ...placementLines(plan, full),
      ...refusalLines(plan, subject),
    ],
  };
}

/** Why no machine is created for it, whatever the pools are. */
function skippedLines(pod: Pod): readonly ExplanationLine[] {
  if (pod.isTerminating) return [stateLine('is being deleted, so it needs no machine')];
  if (!isDaemonSetPod(pod)) return [];
  return [stateLine('belongs to a DaemonSet: a new machine would only get another pod of it')];
}

function placementLines(plan: Plan, name: string): readonly ExplanationLine[] {
  const placed = plan.placements
    .filter(({ pod }) => keyOf(pod) === name)
    .map(({ node, on }) => {
      if (on === 'nominated') return stateLine(`the scheduler makes space for it on node ${node}`);
      return stateLine(
        on === 'node'
          ? `fits on node ${node}: no machine is needed`
          : `will fit on ${node}, which is being provisioned`,
      );
    });
  const created = plan.steps.flatMap((step) => {
    if (step.kind !== 'create') return [];
    const isHere = step.machines.some(({ pods }) => pods.some((pod) => keyOf(pod) === name));
    return isHere ? [stepLine(`gets a new machine: ${step.reason}`, step.facts)] : [];
  });
  return [...placed, ...created];
}

/** Undefined when no pending pod, or more than one, has the name. */
function podNameOf({ pending }: ScalingInput, name: string): string | undefined {
  const found = pending.filter((pod) => podKey(pod) === name || pod.name === name);
  const [first] = found;
  return first === undefined || found.length > 1 ? undefined : podKey(first);
}

function findRunning(
  { snapshot }: ScalingInput,
  name: string,
): { readonly name: string; readonly node: string } | undefined {
  for (const node of snapshot.nodes) {
    const pod = snapshot.podsOn(node.name).find((one) => podKey(one) === name || one.name === name);
    if (pod !== undefined) return { name: podKey(pod), node: node.name };
  }
  return undefined;
}

function keyOf({ namespace, name }: PodName): string {
  return `${namespace}/${name}`;
}

function explainNode({ input, plan, removedPools = [] }: Explained, name: string): Explanation {
  const subject = { kind: 'node' as const, name };
  const node = input.snapshot.nodes.find((one) => one.name === name);
  if (node === undefined) return { subject, isKnown: false, lines: [] };
  const machine = input.machines.find((one) => one.node?.name === name);
  if (machine === undefined) {
    const removed = removedPools.find(({ machines }) =>
      machines.some(({ nodeName }) => nodeName === name),
    );
    const text =
      removed === undefined
        ? 'is no node of a pvescaler machine, so it is never removed'
        : `is of a machine of pool ${removed.name}, which is not in the config, so it is kept as it is: ${endOf(removed)}`;
    return { subject, isKnown: true, lines: [stateLine(text)] };
  }
  const pool = input.pools.find(({ config }) => config.name === machine.pool);
  const state =
    pool === undefined
      ? stateLine(`belongs to pool ${machine.pool}, which is not in the config`)
      : utilizationLine(machine, utilizationOf(node, input.snapshot.podsOn(name), pool.config));
  const steps = plan.steps
    .filter((step) => step.kind === 'drain' && step.node === name)
    .map((step) => stepLine(`is removed: ${step.reason}`, step.facts));
  const draining = machine.isDraining ? [stateLine('is being drained')] : [];
  const refusals = refusalLines(plan, subject);
  const isFull = refusals.some(({ code }) => code === 'NodePodsFitNowhere');
  return {
    subject,
    isKnown: true,
    lines: [state, ...draining, ...steps, ...refusals, ...(isFull ? moveLines(input, name) : [])],
  };
}

/** How many different reasons against nodes are listed. */
const MAX_REASONS = 5;

/** Why the pods of a node do not fit elsewhere, node by node; only for the node that is asked about, since it costs time. */
function moveLines({ snapshot, settings, unreadyNodes }: ScalingInput, name: string) {
  const drain = simulateDrain(snapshot, [name], {
    avoid: new Set(unreadyNodes),
    expendableBelow: settings.expendablePriority,
  });
  if (drain.isPossible)
    return [
      stateLine('its pods fit on other nodes if no other machine is removed and no pod waits'),
    ];
  const [first] = drain.unmovable;
  if (first === undefined) return [];
  const byReason = Map.groupBy(first.nodes, ({ reasons }) => reasons.map(formatReason).join(', '));
  return [...byReason].slice(0, MAX_REASONS).map(([reason, nodes]) => {
    const [node] = nodes;
    const where = nodes.length === 1 ? '' : ` and ${formatCount(nodes.length - 1, 'other')}`;
    return stateLine(`pod ${podKey(first.pod)} does not fit on ${node?.node}${where}: ${reason}`, {
      nodes: nodes.length,
    });
  });
}

function utilizationLine(
  { pool, size, id }: ScalingMachine,
  { cpu, memory, pods }: ReturnType<typeof utilizationOf>,
): ExplanationLine {
  const percent = (share: number): number => Math.round(share * 1_000) / 10;
  return stateLine(
    `machine ${id} of pool ${pool} (${describeSize(size)}): cpu ${percent(cpu)} % and memory ${percent(memory)} % requested, ${formatCount(pods, 'pod')} to move`,
    { cpuPercent: percent(cpu), memoryPercent: percent(memory), pods },
  );
}

/** What a person can do about the machines of a removed pool. */
function endOf({ name }: RemovedPool): string {
  return `add the pool again, or run pvescaler pool delete ${name}`;
}

function explainRemovedPool({ removedPools = [] }: Explained, name: string): Explanation {
  const subject = { kind: 'pool' as const, name };
  const removed = removedPools.find((one) => one.name === name);
  if (removed === undefined) return { subject, isKnown: false, lines: [] };
  const count = removed.machines.length;
  const kept = `${formatCount(count, 'machine')} ${count === 1 ? 'is kept as it is' : 'are kept as they are'}`;
  const text = `is not in the config, so its ${kept}: ${endOf(removed)}`;
  return { subject, isKnown: true, lines: [stateLine(text, { machines: count })] };
}

function explainPool(explained: Explained, name: string): Explanation {
  const { input, plan } = explained;
  const subject = { kind: 'pool' as const, name };
  const pool = input.pools.find(({ config }) => config.name === name);
  if (pool === undefined) return explainRemovedPool(explained, name);
  const { min, max, schedule } = effectiveLimits(pool.config, input.now);
  const members = input.machines.filter((one) => one.pool === name && isMember(one));
  const ready = members.filter(({ phase }) => phase === 'ready').length;
  const during = schedule === undefined ? '' : ` during ${schedule}`;
  const state = stateLine(
    `has ${formatCount(members.length, 'machine')}, ${ready} ready; at least ${min}, at most ${max}${during}`,
    { machines: members.length, ready, min, max },
  );
  const steps = plan.steps
    .filter((step) => step.pool === name)
    .map(({ reason, facts }) => stepLine(reason, facts));
  const hosts = plan.refusals
    .filter(({ subject: { kind }, facts }) => kind === 'host' && facts['pool'] === name)
    .map(refusalLine);
  const regions = plan.refusals
    .filter(({ code, subject: { name: region } }) => {
      return code === 'RegionUnread' && pool.config.regions.includes(region);
    })
    .map(refusalLine);
  return {
    subject,
    isKnown: true,
    lines: [state, ...steps, ...refusalLines(plan, subject), ...hosts, ...regions],
  };
}

function explainHost({ input, plan }: Explained, name: string): Explanation {
  const found = input.hosts.filter((one) => hostKey(one) === name || one.name === name);
  const [host] = found;
  if (host === undefined || found.length > 1) return explainUnreadHost(plan, name);
  const subject = { kind: 'host' as const, name: hostKey(host) };
  const machines = input.machines.filter(
    ({ placement }) => placement?.host === host.name && placement.region === host.region,
  );
  const capacities = Object.entries(host.pools).map(([pool, capacity]) => {
    const { cpus, memoryBytes, diskBytes, refusal } = capacity;
    const free = `${formatCount(Math.max(0, cpus), 'vCPU')}, ${freeBytes(memoryBytes)} of memory and ${freeBytes(diskBytes)} of disk`;
    return stateLine(
      refusal === undefined
        ? `has ${free} left for pool ${pool}`
        : `pool ${pool}: ${refusal.message}`,
      { pool, cpus, memoryBytes, diskBytes },
    );
  });
  return {
    subject,
    isKnown: true,
    lines: [
      stateLine(`runs ${formatCount(machines.length, 'machine')}`, { machines: machines.length }),
      ...capacities,
      ...refusalLines(plan, subject),
    ],
  };
}

/** A host of a region that cannot be read is not in the input. */
function explainUnreadHost({ refusals }: Plan, name: string): Explanation {
  const [region = '', host] = name.split('/');
  const unread = refusals.filter(
    ({ code, subject }) =>
      code === 'RegionUnread' && (host === undefined || subject.name === region),
  );
  return { subject: { kind: 'host', name }, isKnown: false, lines: unread.map(refusalLine) };
}

function refusalLines(plan: Plan, { kind, name }: Refusal['subject']): readonly ExplanationLine[] {
  return plan.refusals
    .filter(({ subject }) => subject.kind === kind && subject.name === name)
    .map(refusalLine);
}

function refusalLine({ code, reason, facts }: Refusal): ExplanationLine {
  return { kind: 'refusal', code, text: reason, facts };
}

function stepLine(text: string, facts: Facts): ExplanationLine {
  return { kind: 'step', text, facts };
}

function stateLine(text: string, facts: Facts = {}): ExplanationLine {
  return { kind: 'state', text, facts };
}
