// SPDX-License-Identifier: Apache-2.0
// Forgets what is over. Records of what is gone stay as long as ids and addresses rest.
import { COOL_DOWN_MS } from '../../placement/index.ts';
import type { Turn } from '../turn.ts';

const MINUTE_MS = 60_000;
/** A little longer than the rest itself, so that both agree whatever the order of their clocks. */
const GONE_MS = COOL_DOWN_MS + 5 * MINUTE_MS;
const FAILED_MS = 60 * MINUTE_MS;
const INTENT_MS = 60 * MINUTE_MS;

const JOURNAL_MS = 30 * 24 * 60 * MINUTE_MS;
const JOURNAL_KEPT = 100_000;
const PRUNE_EVERY_MS = 60 * MINUTE_MS;

export async function collect(turn: Turn): Promise<void> {
  await prune(turn);
  await collectMachines(turn);
  const { books, now } = turn;
  for (const { id, state, requestedAt } of books.intents) {
    if (state === 'done' && now - requestedAt > INTENT_MS) await books.removeIntent(id);
  }
  for (const lease of books.addresses) {
    if (lease.releasedAt !== undefined && now - lease.releasedAt > GONE_MS) {
      await books.removeAddress(lease);
    }
  }
}

async function prune(turn: Turn): Promise<void> {
  if (turn.now - turn.memory.prunedAt < PRUNE_EVERY_MS) return;
  turn.memory.prunedAt = turn.now;
  await turn.pruneJournal({ beforeMs: turn.now - JOURNAL_MS, keep: JOURNAL_KEPT });
}

async function collectMachines({ books, memory, now }: Turn): Promise<void> {
  for (const { id, phase, phaseSince } of books.census.inPhase('gone', 'failed')) {
    const keptMs = phase === 'gone' ? GONE_MS : FAILED_MS;
    if (now - phaseSince <= keptMs) continue;
    await books.removeMachine(id);
    memory.forget(id);
  }
}
