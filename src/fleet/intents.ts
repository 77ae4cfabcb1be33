// SPDX-License-Identifier: Apache-2.0
// Carries out what was asked for, as far as records go: afterwards each machine's record carries the wish, and the
// intent has no more effect. Doing it twice does nothing twice.
import type { CreateIntent, Intent } from '../model/intent.ts';
import type { Machine, MachineFailure } from '../model/machine.ts';
import type { MachineId } from '../model/machine-id.ts';
import { beyondLimits } from './pool-limits.ts';
import type { Turn } from './turn.ts';

export async function carryOutIntents(turn: Turn): Promise<void> {
  for (const intent of openIntents(turn.books.intents)) await carryOut(turn, intent);
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

async function carryOut(turn: Turn, intent: Intent): Promise<void> {
  for (const id of intent.machines) {
    if (intent.kind === 'create') await request(turn, intent, id);
    else await takeAway(turn, intent, id);
  }
  await turn.books.putIntent({ ...intent, state: 'done' });
  await turn.tell({
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

async function request(turn: Turn, intent: CreateIntent, id: MachineId): Promise<void> {
  if (turn.books.find(id) !== undefined) return;
  const machine: Machine = {
    id,
    pool: intent.pool,
    phase: 'requested',
    phaseSince: turn.now,
    requestedAt: intent.requestedAt,
    intent: intent.id,
    size: intent.size,
    attempts: 0,
  };
  const failure = surplusOf(turn, intent);
  await turn.books.putMachine(
    failure === undefined ? machine : { ...machine, phase: 'failed', failure },
  );
}

/** Two processes may have asked at once, each finding room for its own: only here is everything known. */
function surplusOf(turn: Turn, { pool: name, size }: CreateIntent): MachineFailure | undefined {
  const pool = turn.pool(name);
  if (pool === undefined) return undefined;
  const members = turn.books.membersOf(name).filter(({ phase }) => phase !== undefined);
  const beyond = beyondLimits(pool, { members, count: 1, size });
  if (beyond === undefined) return undefined;
  const { code, message } = beyond;
  return { code, message, at: turn.now, phase: 'requested' };
}

async function takeAway(turn: Turn, intent: Intent, id: MachineId): Promise<void> {
  const machine = turn.books.find(id);
  if (machine === undefined) return;
  if (isOnItsWayOut(machine))
    return intent.kind === 'delete' ? forgetFailure(turn, machine) : undefined;
  const deletionReason = `${intent.requestedBy}: ${intent.reason}`;
  if (machine.phase === 'requested' || machine.phase === 'placed') {
    await turn.books.releaseAddresses(id);
    await turn.books.move(id, 'gone', { deletionReason });
    return;
  }
  if (intent.kind === 'cancel') return;
  // Its task, if one runs, is waited for: what it makes must be found.
  const { task } = machine;
  await turn.books.move(id, 'deleting', { deletionReason, ...(task !== undefined && { task }) });
  turn.memory.pauses.delete(id);
}

/** A failed creation is shown until somebody has taken note of it. */
async function forgetFailure({ books }: Turn, { id, phase, failure }: Machine): Promise<void> {
  if (phase === 'failed') await books.move(id, 'gone');
  else if (phase === 'deleting' && failure !== undefined)
    await books.update(id, { failure: undefined });
}

function isOnItsWayOut({ phase }: Machine): boolean {
  return phase === 'deleting' || phase === 'failed' || phase === 'gone';
}
