// SPDX-License-Identifier: Apache-2.0
// Removes old records. Records of deleted machines stay for the cool-down of their VM ids and addresses.
import { COOL_DOWN_MS } from '../../placement/index.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

const MINUTE_MS = 60_000;
/** Longer than the cool-down itself, so that no id is free before its record is removed. */
const GONE_MS = COOL_DOWN_MS + 5 * MINUTE_MS;
const FAILED_MS = 60 * MINUTE_MS;
const INTENT_MS = 60 * MINUTE_MS;

const JOURNAL_MS = 30 * 24 * 60 * MINUTE_MS;
const JOURNAL_KEPT = 100_000;
const PRUNE_EVERY_MS = 60 * MINUTE_MS;

export async function collectGarbage(context: ReconcileContext): Promise<void> {
  await prune(context);
  await collectMachines(context);
  const { records, now } = context;
  for (const { id, state, requestedAt } of records.intents) {
    if (state === 'done' && now - requestedAt > INTENT_MS) await records.removeIntent(id);
  }
  for (const lease of records.addresses) {
    if (lease.releasedAt !== undefined && now - lease.releasedAt > GONE_MS) {
      await records.removeAddress(lease);
    }
  }
}

async function prune(context: ReconcileContext): Promise<void> {
  if (context.now - context.state.prunedAt < PRUNE_EVERY_MS) return;
  context.state.prunedAt = context.now;
  await context.pruneJournal({ beforeMs: context.now - JOURNAL_MS, keep: JOURNAL_KEPT });
}

async function collectMachines({ records, state, now }: ReconcileContext): Promise<void> {
  for (const { id, phase, phaseSince } of records.index.inPhase('gone', 'failed')) {
    const keptMs = phase === 'gone' ? GONE_MS : FAILED_MS;
    if (now - phaseSince <= keptMs) continue;
    await records.removeMachine(id);
    state.forget(id);
  }
}
