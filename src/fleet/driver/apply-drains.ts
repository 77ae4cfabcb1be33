// SPDX-License-Identifier: Apache-2.0
// Applies requests to drain machines, and to cancel drains. A machine without a Node is deleted at once.
import { type Drain, isDrainOver } from '../../model/drain.ts';
import { AUTOSCALER, type CancelDrainIntent, type DrainIntent } from '../../model/intent.ts';
import type { Machine, MachineId } from '../../model/machine.ts';
import type { NodeRef } from '../../ports/cluster.ts';
import { DEFER_MS } from '../../ports/store.ts';
import { timeKey } from '../context/driver-state.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { findNode } from '../nodes/find-node.ts';

/** Of machines whose pool is no longer in the config. */
const DEFAULT_DRAIN_TIMEOUT_MS = 10 * 60_000;

/** `without-node`: the machine is to be deleted instead. `later`: it cannot be decided yet; apply the intent again. */
type DrainOutcome = 'applied' | 'without-node' | 'later';

export async function requestDrain(
  context: ReconcileContext,
  intent: DrainIntent,
  machine: Machine,
): Promise<DrainOutcome> {
  const known = context.records.drain(machine.id);
  // Applied before a crash, and undone since.
  if (known?.intent === intent.id && isDrainOver(known)) return 'applied';
  if (machine.phase === 'draining') return joinDrain(context, intent, known);
  if (machine.phase !== 'ready') return 'without-node';
  const node = nodeToDrain(context, machine);
  if (node === 'none') {
    return intent.requestedBy === AUTOSCALER ? refuse(context, machine) : 'without-node';
  }
  if (node === 'unknown') return 'later';
  // The record first: a machine that is draining always has one. Without that machine, the intent is applied again.
  const drain: Drain = {
    ...requestOf(context, intent, machine),
    machine: machine.id,
    nodeName: node.name,
    nodeUid: node.uid,
    state: 'wanted',
    stateSince: context.now,
    isCordonedByDrain: false,
    blockedBy: [],
  };
  await context.records.putDrain(drain, { deferMs: DEFER_MS });
  await context.records.move(machine.id, 'draining');
  context.state.backoffs.delete(machine.id);
  return 'applied';
}

/** The autoscaler has judged a Node that is gone. Whether the machine is lost is decided elsewhere, see lost-machines.ts. */
async function refuse(context: ReconcileContext, machine: Machine): Promise<DrainOutcome> {
  await context.recordMachine(machine, {
    kind: 'refused',
    reason: 'DrainRefused',
    message: `${machine.placement?.name ?? machine.id} is not drained: it has no Node`,
  });
  return 'applied';
}

/** The request of a person replaces that of the autoscaler: it needs no check, and its time begins now. */
async function joinDrain(
  context: ReconcileContext,
  intent: DrainIntent,
  known: Drain | undefined,
): Promise<DrainOutcome> {
  if (known === undefined || known.state === 'undoing' || known.state === 'undone') return 'later';
  const machine = context.records.machine(known.machine);
  const isNewer = known.intent !== intent.id && intent.requestedBy !== AUTOSCALER;
  if (isNewer && known.state !== 'done') {
    const request = requestOf(context, intent, machine);
    const timeoutMs = request.timeoutMs + drainingMs(context, machine);
    await context.records.putDrain({ ...known, ...request, timeoutMs });
  }
  return 'applied';
}

function drainingMs({ state, clock }: ReconcileContext, { id, phaseSince }: Machine): number {
  return state.driverTime.elapsedMs(timeKey(id, 'phaseSince'), phaseSince, clock);
}

function requestOf(
  context: ReconcileContext,
  intent: DrainIntent,
  { id, pool }: Machine,
): Pick<Drain, 'intent' | 'requestedBy' | 'reason' | 'requestedAt' | 'timeoutMs'> {
  const { requestedBy, reasons = {}, timeoutMs } = intent;
  const poolTimeoutMs = context.pool(pool)?.scaleDown.drainTimeoutMs ?? DEFAULT_DRAIN_TIMEOUT_MS;
  return {
    intent: intent.id,
    requestedBy,
    reason: reasons[id] ?? intent.reason,
    requestedAt: context.now,
    timeoutMs: timeoutMs ?? poolTimeoutMs,
  };
}

/** `unknown`: Kubernetes cannot be read, and the machine may have a Node that is not recorded. */
function nodeToDrain(
  { clusterReading, records, settings }: ReconcileContext,
  machine: Machine,
): NodeRef | 'none' | 'unknown' {
  if (clusterReading.kind === 'none') return 'none';
  if (clusterReading.kind === 'fresh') {
    return findNode(machine, clusterReading.view.nodes, records.index) ?? 'none';
  }
  const { nodeName, nodeUid, pool } = machine;
  if (nodeName !== undefined && nodeUid !== undefined) return { name: nodeName, uid: nodeUid };
  return settings.pools[pool]?.joins === false ? 'none' : 'unknown';
}

export async function cancelDrain(
  { records, now }: ReconcileContext,
  { requestedBy, reason }: CancelDrainIntent,
  id: MachineId,
): Promise<void> {
  const drain = records.drain(id);
  if (records.find(id)?.phase !== 'draining' || drain === undefined) return;
  if (drain.state === 'undoing' || isDrainOver(drain)) return;
  const undo = { cause: 'cancelled', message: `${requestedBy}: ${reason}` } as const;
  await records.putDrain({ ...drain, state: 'undoing', stateSince: now, undo });
}
