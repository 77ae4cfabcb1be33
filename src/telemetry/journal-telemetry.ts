// SPDX-License-Identifier: Apache-2.0
// Logs and counts every journal entry that passes through the store.
import type { JournalEntry, JournalKind } from '../model/journal-entry.ts';
import type { Journal } from '../ports/journal.ts';
import type { Log } from '../ports/log.ts';
import type { Meters } from '../ports/meters.ts';
import type { Store } from '../ports/store.ts';

const LEVELS: Readonly<Record<JournalKind, 'info' | 'warn'>> = {
  did: 'info',
  saw: 'info',
  refused: 'warn',
  failed: 'warn',
};

/** Entries that need a person. */
const ERROR_REASONS: ReadonlySet<string> = new Set(['LostMachinesHeld']);

export function withJournalTelemetry(
  store: Store,
  { log, meters }: { readonly log: Log; readonly meters: Meters },
): Store {
  const journal: Journal = {
    async append(entry) {
      const record = await store.journal.append(entry);
      logEntry(entry, log);
      const { kind, reason } = entry;
      meters.add('pvescaler_journal_entries_total', { kind, reason });
      return record;
    },
    read: (query) => store.journal.read(query),
    prune: (rule) => store.journal.prune(rule),
  };
  return new Proxy(store, {
    get(target, name) {
      if (name === 'journal') return journal;
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function'
        ? (...args: unknown[]): unknown => Reflect.apply(member, target, args)
        : member;
    },
  });
}

function logEntry({ kind, reason, message, subject, numbers }: JournalEntry, log: Log): void {
  const level = ERROR_REASONS.has(reason) ? 'error' : LEVELS[kind];
  log[level](message, { kind, reason, ...subject, ...(numbers && { numbers }) });
}
