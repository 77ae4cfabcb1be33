// SPDX-License-Identifier: Apache-2.0
// Checks a drain again, after the Node was tainted and before its first pod is evicted.
import type { PoolConfig } from '../config/types/index.ts';
import type { CheckDrain, DrainCheck, DrainingNode } from '../fleet/index.ts';
import { podKey } from '../model/pod.ts';
import { Unreachable } from '../ports/errors.ts';
import { findEvictionBlock, RemainingBudgets } from '../scaling/index.ts';
import { pack, type Snapshot, simulateDrain, withPods } from '../scheduling/index.ts';
import type { ClusterObserver, Observed } from './observation.ts';

export interface DrainCheckSources {
  readonly observer: ClusterObserver;
  /** Those that apply now. */
  readonly settings: () => DrainCheckSettings;
  /** Names of all Nodes that are being drained. */
  readonly drainingNodes: () => readonly string[];
}

interface DrainCheckSettings {
  readonly pools: readonly PoolConfig[];
  readonly expendablePriority: number;
}

interface CheckOptions extends DrainCheckSettings, Pick<DrainCheckSources, 'drainingNodes'> {}

export function drainCheck(sources: DrainCheckSources): CheckDrain {
  return async (draining) => {
    const observation = await sources.observer.update();
    if (!observation.isFresh) throw notChecked(draining, observation.reason);
    const { settings, drainingNodes } = sources;
    return checkAgainst(observation.observed, draining, { ...settings(), drainingNodes });
  };
}

function checkAgainst(
  observed: Observed,
  draining: DrainingNode,
  sources: CheckOptions,
): DrainCheck {
  const { snapshot, nodes } = observed;
  const { node, pods } = draining;
  if (nodes.get(node.name)?.uid !== node.uid)
    return { ok: false, reason: `Node ${node.name} is gone or is another one` };
  const known = new Set(snapshot.podsOn(node.name).map(({ uid }) => uid));
  const running = pods.filter((pod) => !pod.isFinished && !pod.isTerminating);
  const unknown = running.find(({ uid }) => !known.has(uid));
  // The list is newer than the watch cache: the next check has the pod.
  if (unknown !== undefined)
    throw notChecked(draining, `the view does not have pod ${podKey(unknown)} yet`);
  return checkRules(observed, draining, sources) ?? checkPlaces(observed, draining, sources);
}

/** A budget that blocks now may allow the eviction later, within the time for the drain. */
function checkRules(
  { disruptionBudgets }: Observed,
  { pool, pods }: DrainingNode,
  { pools, expendablePriority }: CheckOptions,
): DrainCheck | undefined {
  const config = pools.find(({ name }) => name === pool);
  if (config === undefined)
    return { ok: false, reason: `pool ${pool} is not in the config any more` };
  const rules = {
    scaleDown: config.scaleDown,
    expendablePriority,
    budgets: new RemainingBudgets(disruptionBudgets),
  };
  // Pod by pod: behind one whose budget blocks may be one that must stay.
  const block = pods
    .map((pod) => findEvictionBlock([pod], rules))
    .find((one) => one !== undefined && one.code !== 'DisruptionBudget');
  return block === undefined ? undefined : { ok: false, reason: block.reason };
}

/** Pending pods get their places first; other drains go on. */
function checkPlaces(
  observed: Observed,
  { node }: DrainingNode,
  { drainingNodes, expendablePriority: expendableBelow }: CheckOptions,
): DrainCheck {
  const drained = drainingNodes().filter((name) => observed.nodes.has(name));
  const unready = [...observed.nodes.values()].filter(({ ready }) => !ready);
  const simulation = simulateDrain(
    withPending(observed, expendableBelow),
    [...new Set([node.name, ...drained])],
    { avoid: new Set(unready.map(({ name }) => name)), expendableBelow },
  );
  const left = simulation.isPossible
    ? undefined
    : simulation.unmovable.find(({ from }) => from === node.name);
  if (left === undefined) return { ok: true };
  return { ok: false, reason: `pod ${podKey(left.pod)} fits on no other node any more` };
}

function withPending({ snapshot, pending }: Observed, expendableBelow: number): Snapshot {
  if (pending.length === 0) return snapshot;
  const { existing } = pack(snapshot, pending, { pools: [], expendableBelow });
  // The snapshot keeps space for nominated pods.
  return withPods(
    snapshot,
    existing.filter(({ how }) => how === 'fits'),
  );
}

function notChecked({ node }: DrainingNode, reason: string): Unreachable {
  return new Unreachable('VIEW_STALE', `the drain of Node ${node.name} waits: ${reason}`);
}
