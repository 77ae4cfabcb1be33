// SPDX-License-Identifier: Apache-2.0
import type { Machine } from '../model/machine.ts';
import type { OpenFleet } from '../setup/index.ts';

const MAX_JOURNAL_ENTRIES = 20;

/** The newest refusal or failure of the machine's current phase. */
export async function findLastError(
  { store }: Pick<OpenFleet, 'store'>,
  { id, phaseSince }: Machine,
): Promise<string | undefined> {
  const entries = await store.journal.read({ machine: id, limit: MAX_JOURNAL_ENTRIES });
  return entries.findLast(({ kind, at }) => kind !== 'did' && at >= phaseSince)?.message;
}
