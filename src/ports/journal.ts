// SPDX-License-Identifier: Apache-2.0
import type { JournalEntry } from '../model/journal-entry.ts';

export interface JournalQuery {
  /** Entries after this sequence number; 0 or absent = from the oldest kept. */
  readonly after?: number;
  readonly pool?: string;
  readonly machine?: string;
  readonly node?: string;
  /** The newest entries are kept when there are more. Default 1000. */
  readonly limit?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface JournalRecord extends JournalEntry {
  /** Grows with each entry, over all processes; never reused, also not after pruning. */
  readonly sequence: number;
}

/**
 * What was done or refused, and why; the source of `explain`, of events and of the page. Written after the
 * fact it reports is durable. Losing an entry loses an explanation, never a machine.
 */
export interface Journal {
  /** Durable when it resolves. Not idempotent: a repeated call is a second entry. */
  append(entry: JournalEntry): Promise<JournalRecord>;
  /** Oldest first. */
  read(query?: JournalQuery): Promise<readonly JournalRecord[]>;
  /** Forgets entries older than `beforeMs` (wall clock) and all but the newest `keep`. Returns how many went. */
  prune(rule: { readonly beforeMs: number; readonly keep: number }): Promise<number>;
}
