// SPDX-License-Identifier: Apache-2.0
// draining → deleting, or ready where the drain is undone. Taints the Node, lists and checks its pods again, cordons it,
// evicts the pods, and waits until they and their volumes are gone. Each change of the Node is recorded before it is
// made, so that it can be undone after a crash.
import {
  CORDONED_BY_DRAIN,
  DRAIN_TAINT,
  DRAIN_TRANSITIONS,
  type Drain,
  type DrainBlocker,
  type DrainState,
  formatBlockers,
  isTerminatingPod,
  type UndoCause,
} from '../../model/drain.ts';
import { formatAge } from '../../model/format-text.ts';
import { AUTOSCALER } from '../../model/intent.ts';
import type { Pod } from '../../model/pod.ts';
import type { Cluster, ClusterNode } from '../../ports/cluster.ts';
import { Bug, PvescalerError } from '../../ports/errors.ts';
import { DEFER_MS } from '../../ports/store.ts';
import {
  CONTINUE,
  type MachineReconcile,
  type ReconcileResult,
  requeue,
} from '../context/machine-reconcile.ts';
import {
  claimsOfStaying,
  evictPods,
  inEvictionOrder,
  isKubeletDead,
  mustLeave,
} from '../nodes/drain-pods.ts';
import { drainTaintOf } from '../nodes/drain-taint.ts';
import { findOwnNode } from '../nodes/find-node.ts';
import { recordGuestAddresses } from './guest-addresses.ts';

/** A change of the Node takes a moment to be in the view. */
const VIEW_RECHECK_MS = 250;
const STALE_RECHECK_MS = 1_000;
const INITIAL_WAIT_MS = 1_000;
/** A pod that ends is noticed soon; a budget that blocks may do so for long. */
const MAX_WAIT_MS = 3_000;
const MAX_BLOCKED_MS = 10_000;
/** A drain is forced only after Kubernetes could be read, and evictions be tried, for so long. */
const FORCE_AFTER_MS = 60_000;

/** What one step of a drain works with. */
interface DrainStep {
  readonly reconcile: MachineReconcile;
  readonly drain: Drain;
  readonly cluster: Cluster;
  readonly node: ClusterNode;
}

export async function draining(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const drain = reconcile.context.records.drain(reconcile.id);
  // Without a record nothing is known of the drain; `ready` removes a taint that is left.
  if (drain === undefined || drain.state === 'undone') return endUndone(reconcile);
  if (drain.state === 'done') return deleteMachine(reconcile, drain);
  const { clusterReading } = reconcile.context;
  if (clusterReading.kind !== 'fresh') {
    return requeue(STALE_RECHECK_MS, 'its Node cannot be drained: Kubernetes cannot be read');
  }
  if (reconcile.isRegionReadable) await recordGuestAddresses(reconcile);
  const { cluster, view } = clusterReading;
  const node = view.nodes.find(({ uid }) => uid === drain.nodeUid);
  if (drain.state === 'undoing') return undo(reconcile, drain, { cluster, node });
  if (node === undefined) return handleMissingNode(reconcile, drain);
  return continueDrain({ reconcile, drain, cluster, node });
}

/** Whether the time for the drain is over; a back-off must not delay what follows. */
export function isDrainOverdue(reconcile: MachineReconcile): boolean {
  if (reconcile.machine.phase !== 'draining') return false;
  const drain = reconcile.context.records.drain(reconcile.id);
  return drain !== undefined && drainingMs(reconcile) >= drain.timeoutMs;
}

/** Time without a driver does not count. */
function drainingMs(reconcile: MachineReconcile): number {
  return reconcile.elapsedMs('phaseSince', reconcile.machine.phaseSince);
}

async function continueDrain(step: DrainStep): Promise<ReconcileResult> {
  const { reconcile, drain } = step;
  if (isDrainOverdue(reconcile)) {
    if (!isForced(step)) return decideUndo(step, 'timed-out', describeTimeout(drain));
    if (reconcile.isRegionReadable && isForceDue(step)) return force(step);
  }
  if (!reconcile.isRegionReadable) return waitForRegion(step);
  if (drain.state === 'wanted') return taint(step);
  return drain.state === 'tainted' ? begin(step) : evict(step);
}

async function taint(step: DrainStep): Promise<ReconcileResult> {
  const { reconcile, drain, cluster, node } = step;
  const { context } = reconcile;
  // The record of a drain that had begun may be lost: the value of the taint says that it cordoned the Node.
  const value = drainTaintOf(node)?.value ?? DRAIN_TAINT.value;
  const addTaints = [{ ...DRAIN_TAINT, value }];
  await cluster.changeNode(node, { addTaints }, context.writeOptions());
  await moveDrain(reconcile, drain, 'tainted');
  await reconcile.record({
    kind: 'did',
    reason: 'DrainStarted',
    message: `draining node ${node.name}, requested by ${drain.requestedBy}: ${drain.reason}`,
  });
  return CONTINUE;
}

/** From here on no pod without a toleration can be scheduled to the Node: what is listed now is complete. */
async function begin(step: DrainStep): Promise<ReconcileResult> {
  const { reconcile, drain, cluster, node } = step;
  const taint = drainTaintOf(node);
  if (taint === undefined) {
    return requeue(VIEW_RECHECK_MS, 'the taint of its Node is not in the view yet');
  }
  const pods = await cluster.podsOn(node.name, reconcile.context.readOptions);
  const refusal = await check(step, pods);
  if (refusal !== undefined) return decideUndo(step, 'changed', refusal);
  const isCordonedByDrain = !node.unschedulable || taint.value === CORDONED_BY_DRAIN;
  await moveDrain(reconcile, drain, 'evicting', { isCordonedByDrain });
  return CONTINUE;
}

/** One round of evictions; it is repeated until nothing is left. */
async function evict(step: DrainStep): Promise<ReconcileResult> {
  const { reconcile, cluster, node } = step;
  const { context } = reconcile;
  const change = describeChange(step);
  if (change !== undefined) return decideUndo(step, 'changed', change);
  await cordon(step);
  const pods = await cluster.podsOn(node.name, context.readOptions);
  const leaving = pods.filter(mustLeave);
  // A budget may block evictions for long, and the place of a pod be taken meanwhile.
  if (leaving.some(({ isTerminating }) => !isTerminating)) {
    const refusal = await check(step, pods);
    if (refusal !== undefined) return decideUndo(step, 'changed', refusal);
  }
  const left = await evictPods(context, cluster, inEvictionOrder(leaving, node));
  const isDead = isKubeletDead(node, context.now);
  const waiting = isDead ? left.filter((blocker) => !isTerminatingPod(blocker)) : left;
  if (waiting.length > 0) return waitFor(step, 'evicting', waiting);
  const volumes = isDead ? [] : await attachedVolumes(step, pods);
  return volumes.length > 0 ? waitFor(step, 'waiting-for-volumes', volumes) : complete(step);
}

/** What a person has changed on the Node since it was cordoned. */
function describeChange({ drain, node }: DrainStep): string | undefined {
  const found = drainTaintOf(node);
  if (found === undefined) return `the taint ${DRAIN_TAINT.key} was removed from the Node`;
  const isUncordoned = found.value === CORDONED_BY_DRAIN && !node.unschedulable;
  return isUncordoned && drain.isCordonedByDrain ? 'the Node was uncordoned' : undefined;
}

/** In one write with the value of the taint, which says who cordoned the Node if the record is lost. */
async function cordon({ reconcile, drain, cluster, node }: DrainStep): Promise<void> {
  if (!drain.isCordonedByDrain || drainTaintOf(node)?.value === CORDONED_BY_DRAIN) return;
  const addTaints = [{ ...DRAIN_TAINT, value: CORDONED_BY_DRAIN }];
  const options = reconcile.context.writeOptions();
  await cluster.changeNode(node, { addTaints, unschedulable: true }, options);
}

/** Without Proxmox the VM could not be deleted, so no pod is evicted for it. */
async function waitForRegion(step: DrainStep): Promise<ReconcileResult> {
  const { reconcile, drain } = step;
  const object = `Proxmox region ${reconcile.placement.region}`;
  await waitFor(step, drain.state, [{ object, reason: 'it cannot be read' }]);
  return requeue(STALE_RECHECK_MS, 'its Node is not drained: its region cannot be read');
}

async function attachedVolumes(
  { reconcile, cluster, node }: DrainStep,
  pods: readonly Pod[],
): Promise<readonly DrainBlocker[]> {
  const { readOptions } = reconcile.context;
  const names = await cluster.attachedVolumes(node.name, claimsOfStaying(pods), readOptions);
  return names.map((name) => ({ object: `volume ${name}`, reason: 'it is still attached' }));
}

/** Why the node must stay. Only drains of the autoscaler are checked: the others were requested by a person. */
async function check(
  { reconcile, drain, node }: DrainStep,
  pods: readonly Pod[],
): Promise<string | undefined> {
  if (drain.requestedBy !== AUTOSCALER) return undefined;
  const { context, id, machine } = reconcile;
  const { checkDrain, readOptions } = context;
  if (checkDrain === undefined) return 'the autoscaler that requested it does not run here';
  const { name, uid } = node;
  const draining = { machine: id, pool: machine.pool, node: { name, uid }, pods };
  const result = await checkDrain(draining, readOptions.signal);
  return result.ok ? undefined : result.reason;
}

async function waitFor(
  step: DrainStep,
  state: DrainState,
  blockedBy: readonly DrainBlocker[],
): Promise<ReconcileResult> {
  const { reconcile, drain } = step;
  const { drainWaits } = reconcile.context.state;
  const isSame = drain.state === state && isDeepEqual(drain.blockedBy, blockedBy);
  const rounds = isSame ? (drainWaits.get(reconcile.id) ?? 0) + 1 : 0;
  drainWaits.set(reconcile.id, rounds);
  if (drain.state !== state) await moveDrain(reconcile, drain, state, { blockedBy });
  else if (!isSame) {
    await reconcile.context.records.putDrain({ ...drain, blockedBy }, { deferMs: DEFER_MS });
  }
  const refused = blockedBy.filter((blocker) => !isTerminatingPod(blocker));
  if (refused.length > 0) await recordBlocked(step, refused);
  const maxMs = refused.length > 0 ? MAX_BLOCKED_MS : MAX_WAIT_MS;
  const leftMs = Math.max(drain.timeoutMs - drainingMs(reconcile), INITIAL_WAIT_MS);
  const [first] = blockedBy;
  return requeue(
    Math.min(INITIAL_WAIT_MS * 2 ** rounds, maxMs, leftMs),
    `its Node is being drained: ${first?.object}: ${first?.reason}`,
  );
}

function isDeepEqual(one: readonly DrainBlocker[], other: readonly DrainBlocker[]): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function recordBlocked(
  { reconcile, node }: DrainStep,
  blockedBy: readonly DrainBlocker[],
): Promise<void> {
  return reconcile.context.recordOnce(`drain ${reconcile.id}`, {
    kind: 'saw',
    subject: { pool: reconcile.machine.pool, machine: reconcile.id, node: node.name },
    reason: 'DrainBlocked',
    message: `the drain of node ${node.name} waits for ${formatBlockers(blockedBy)}`,
    numbers: { blockers: blockedBy.length },
  });
}

async function complete(step: DrainStep): Promise<ReconcileResult> {
  const { reconcile, drain, node } = step;
  return finish(reconcile, drain, {
    reason: 'DrainCompleted',
    message: `node ${node.name} was drained: ${drain.reason}`,
  });
}

function isForced({ reconcile, drain }: DrainStep): boolean {
  const hasBegun = drain.state === 'evicting' || drain.state === 'waiting-for-volumes';
  return hasBegun && reconcile.pool?.scaleDown.onDrainTimeout === 'force';
}

function isForceDue({ reconcile: { context } }: DrainStep): boolean {
  return context.clock.monotonic() - context.state.clusterStaleAt >= FORCE_AFTER_MS;
}

function force({ reconcile, drain, node }: DrainStep): Promise<ReconcileResult> {
  return finish(reconcile, drain, {
    reason: 'DrainForced',
    message: `node ${node.name} is deleted although it is not drained (scaleDown.onDrainTimeout: force): ${describeTimeout(drain)}`,
  });
}

interface Ending {
  readonly reason: string;
  readonly message: string;
}

/** The entry may be written twice after a crash, but is never missing. */
async function finish(
  reconcile: MachineReconcile,
  drain: Drain,
  { reason, message }: Ending,
): Promise<ReconcileResult> {
  const numbers = { seconds: secondsOf(reconcile) };
  await reconcile.record({ kind: 'did', reason, message, numbers });
  const done = await moveDrain(reconcile, drain, 'done', { blockedBy: [] });
  return deleteMachine(reconcile, done);
}

async function deleteMachine(
  reconcile: MachineReconcile,
  { requestedBy, reason }: Drain,
): Promise<ReconcileResult> {
  reconcile.context.state.forgetDrain(reconcile.id);
  return reconcile.move('deleting', { deletionReason: `${requestedBy}: ${reason}` });
}

/**
 * The Node was deleted or registered again. What a person requested goes on; for the autoscaler the machine is not the one
 * that it has judged.
 */
async function handleMissingNode(
  reconcile: MachineReconcile,
  drain: Drain,
): Promise<ReconcileResult> {
  const { context } = reconcile;
  if (drain.requestedBy === AUTOSCALER) {
    return decideUndo({ reconcile, drain }, 'changed', 'its Node is gone, or was registered again');
  }
  const other = findOwnNode(reconcile);
  if (other === undefined) {
    const message = `node ${drain.nodeName} is gone, so there is nothing to drain: ${drain.reason}`;
    return finish(reconcile, drain, { reason: 'DrainCompleted', message });
  }
  await context.records.putDrain({
    ...drain,
    nodeName: other.name,
    nodeUid: other.uid,
    state: 'wanted',
    stateSince: context.now,
    isCordonedByDrain: false,
    blockedBy: [],
  });
  return CONTINUE;
}

function describeTimeout({ timeoutMs, blockedBy }: Drain): string {
  const what = blockedBy.length === 0 ? 'nothing was evicted' : formatBlockers(blockedBy);
  return `it was not drained within ${formatAge(timeoutMs)}: ${what}`;
}

async function decideUndo(
  { reconcile, drain }: Pick<DrainStep, 'reconcile' | 'drain'>,
  cause: UndoCause,
  message: string,
): Promise<ReconcileResult> {
  await moveDrain(reconcile, drain, 'undoing', { undo: { cause, message } });
  return CONTINUE;
}

interface NodeToRestore {
  readonly cluster: Cluster;
  /** Undefined: there is nothing to restore. */
  readonly node: ClusterNode | undefined;
}

/** The machine is ready again only when the view shows it: until then the taint would be taken for a leftover. */
async function undo(
  reconcile: MachineReconcile,
  drain: Drain,
  { cluster, node }: NodeToRestore,
): Promise<ReconcileResult> {
  if (node !== undefined) {
    const uncordon = drain.isCordonedByDrain ? { unschedulable: false } : {};
    const change = { removeTaintKeys: [DRAIN_TAINT.key], ...uncordon };
    await unlessNodeGone(cluster.changeNode(node, change, reconcile.context.writeOptions()));
    if (drainTaintOf(node) !== undefined) {
      return requeue(VIEW_RECHECK_MS, 'the view still shows the taint of its Node');
    }
  }
  const { cause = 'changed', message = 'unknown' } = drain.undo ?? {};
  await reconcile.record({
    kind: UNDO_KINDS[cause],
    reason: UNDO_REASONS[cause],
    message: `the drain of node ${drain.nodeName} was undone: ${message}`,
    numbers: { seconds: secondsOf(reconcile) },
  });
  await moveDrain(reconcile, drain, 'undone', { blockedBy: [] });
  return endUndone(reconcile);
}

const UNDO_KINDS = { cancelled: 'did', changed: 'refused', 'timed-out': 'failed' } as const;
/** The metrics distinguish them too. */
const UNDO_REASONS = {
  cancelled: 'DrainCancelled',
  changed: 'DrainUndone',
  'timed-out': 'DrainTimedOut',
} as const;

async function unlessNodeGone(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof PvescalerError && error.code === 'NODE_NOT_FOUND')) throw error;
  }
}

function endUndone(reconcile: MachineReconcile): Promise<ReconcileResult> {
  reconcile.context.state.forgetDrain(reconcile.id);
  return reconcile.move('ready');
}

function secondsOf(reconcile: MachineReconcile): number {
  return Math.round(drainingMs(reconcile) / 1_000);
}

// oxlint-disable-next-line max-params -- machine, record, state and its other changes
async function moveDrain(
  { context }: MachineReconcile,
  drain: Drain,
  to: DrainState,
  changes: Partial<Drain> = {},
): Promise<Drain> {
  if (!DRAIN_TRANSITIONS[drain.state].includes(to)) {
    throw new Bug(
      'BUG',
      `the drain of ${drain.nodeName} cannot change from ${drain.state} to ${to}`,
    );
  }
  const moved = { ...drain, ...changes, state: to, stateSince: context.now };
  // A decision to undo must not be lost. The Node shows the other states, and the last ones come with a change of phase.
  await context.records.putDrain(moved, to === 'undoing' ? {} : { deferMs: DEFER_MS });
  return moved;
}
