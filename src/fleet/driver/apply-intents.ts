// SPDX-License-Identifier: Apache-2.0
// Carries out what was asked for, as far as records go: afterwards each machine's record carries the wish, and the
// intent has no more effect. Doing it twice does nothing twice.
import type { CreateIntent, Intent } from '../../model/intent.ts';
import type { Machine, MachineFailure } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { limitError } from '../records/pool-limits.ts';

export async function applyIntents(context: ReconcileContext): Promise<void> {
  for (const intent of openIntents(context.records.intents)) await applyIntent(context, intent);
}

/** In the order in which they were asked for, so that a deletion finds what it speaks of. */
export function openIntents(intents: readonly Intent[]): readonly Intent[] {
  return intents
    .filter(({ state }) => state === 'open')
    .toSorted((a, b) => a.requestedAt - b.requestedAt || order(a, b));
}

/** In the same instant creations come first, so that a deletion finds what it speaks of. */
function order(a: Intent, b: Intent): number {
  const isCreate = (intent: Intent) => Number(intent.kind === 'create');
  return isCreate(b) - isCreate(a) || (a.id < b.id ? -1 : 1);
}

async function applyIntent(context: ReconcileContext, intent: Intent): Promise<void> {
  for (const id of intent.machines) {
    if (intent.kind === 'create') await createRecord(context, intent, id);
    else await requestDeletion(context, intent, id);
  }
  await context.records.putIntent({ ...intent, state: 'done' });
  await context.record({
    kind: 'did',
    subject: { pool: intent.pool },
    reason: REASONS[intent.kind],
    message: `${intent.machines.length} machines of pool ${intent.pool}, for ${intent.requestedBy}: ${intent.reason}`,
    numbers: { machines: intent.machines.length },
  });
}

const REASONS: Readonly<Record<Intent['kind'], string>> = {
  create: 'MachinesRequested',
  delete: 'MachinesDismissed',
  cancel: 'MachinesCancelled',
};

async function createRecord(
  context: ReconcileContext,
  intent: CreateIntent,
  id: MachineId,
): Promise<void> {
  if (context.records.find(id) !== undefined) return;
  const machine: Machine = {
    id,
    pool: intent.pool,
    phase: 'requested',
    phaseSince: context.now,
    requestedAt: intent.requestedAt,
    intent: intent.id,
    size: intent.size,
    attempts: 0,
  };
  const failure = surplusOf(context, intent);
  await context.records.putMachine(
    failure === undefined ? machine : { ...machine, phase: 'failed', failure },
  );
}

/** Two processes may have asked at once, each finding room for its own: only here is everything known. */
function surplusOf(
  context: ReconcileContext,
  { pool: name, size }: CreateIntent,
): MachineFailure | undefined {
  const pool = context.pool(name);
  if (pool === undefined) return undefined;
  const members = context.records.membersOf(name).filter(({ phase }) => phase !== undefined);
  const beyond = limitError(pool, { members, count: 1, size });
  if (beyond === undefined) return undefined;
  const { code, message } = beyond;
  return { code, message, at: context.now, phase: 'requested' };
}

async function requestDeletion(
  context: ReconcileContext,
  intent: Intent,
  id: MachineId,
): Promise<void> {
  const machine = context.records.find(id);
  if (machine === undefined) return;
  if (isBeingDeleted(machine))
    return intent.kind === 'delete' ? forgetFailure(context, machine) : undefined;
  const deletionReason = `${intent.requestedBy}: ${intent.reason}`;
  if (machine.phase === 'requested' || machine.phase === 'placed') {
    await context.records.releaseAddresses(id);
    await context.records.move(id, 'gone', { deletionReason });
    return;
  }
  if (intent.kind === 'cancel') return;
  // Its task, if one runs, is waited for: what it makes must be found.
  const { task } = machine;
  await context.records.move(id, 'deleting', {
    deletionReason,
    ...(task !== undefined && { task }),
  });
  context.state.backoffs.delete(id);
}

/** A failed creation is shown until somebody has taken note of it. */
async function forgetFailure(
  { records }: ReconcileContext,
  { id, phase, failure }: Machine,
): Promise<void> {
  if (phase === 'failed') await records.move(id, 'gone');
  else if (phase === 'deleting' && failure !== undefined)
    await records.update(id, { failure: undefined });
}

function isBeingDeleted({ phase }: Machine): boolean {
  return phase === 'deleting' || phase === 'failed' || phase === 'gone';
}
