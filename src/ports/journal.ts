// SPDX-License-Identifier: Apache-2.0
import type { JournalEntry } from '../model/journal-entry.ts';

export interface JournalQuery {
  /** Entries after this sequence number; 0 or absent: from the oldest stored entry. */
  readonly after?: number;
  readonly pool?: string;
  readonly machine?: string;
  readonly node?: string;
  /** Returns the newest entries when there are more. Default 1000. */
  readonly limit?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface JournalRecord extends JournalEntry {
  /** Grows with each entry across all processes; never reused, even after pruning. */
  readonly sequence: number;
}

/**
 * What was done or refused, and why; the source of `explain`, of Events and of the dashboard. An entry is written after
 * the change that it reports is durable. A lost entry loses an explanation, never a machine.
 */
export interface Journal {
  /** Durable when it resolves. Not idempotent: a repeated call appends a second entry. */
  append(entry: JournalEntry): Promise<JournalRecord>;
  /** Oldest first. */
  read(query?: JournalQuery): Promise<readonly JournalRecord[]>;
  /** Deletes entries older than `beforeMs` (wall clock) and all but the newest `keep`. Returns the number deleted. */
  prune(rule: { readonly beforeMs: number; readonly keep: number }): Promise<number>;
}
