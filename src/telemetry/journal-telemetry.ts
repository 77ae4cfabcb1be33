// SPDX-License-Identifier: Apache-2.0
// Logs and counts every journal entry that passes through the store.
import type { JournalEntry, JournalKind } from '../model/journal-entry.ts';
import { PROVISIONING_PHASES } from '../model/machine.ts';
import { ERROR_CODES, type ErrorClass } from '../ports/error-codes.ts';
import type { Journal } from '../ports/journal.ts';
import type { Log } from '../ports/log.ts';
import type { Meters } from '../ports/meters.ts';
import type { Store } from '../ports/store.ts';

type Level = 'info' | 'warn' | 'error';

const LEVELS: Readonly<Record<JournalKind, Level>> = {
  did: 'info',
  saw: 'info',
  refused: 'warn',
  failed: 'warn',
};

/** Other levels than that of the kind: 'error' where an operator must act, 'info' for ordinary waiting. */
const LEVELS_BY_REASON: Readonly<Record<string, Level>> = {
  LostMachinesHeld: 'error',
  RegionRefused: 'error',
  ConfigRefused: 'error',
  ViewStale: 'warn',
  MachineLost: 'warn',
  HOSTS_BUSY: 'info',
  DrainBlocked: 'warn',
  DrainForced: 'warn',
};

/** Failures that last until an operator acts. */
const OPERATOR_CLASSES: ReadonlySet<string> = new Set<ErrorClass>([
  'Unauthorized',
  'InvalidConfig',
  'UnsupportedVersion',
  'Bug',
]);

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
      countDrain(entry, meters);
      countProvisioning(entry, meters);
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

/** The outcome of a drain, by the reason of the entry that ends it. */
const DRAIN_OUTCOMES: Readonly<Record<string, string>> = {
  DrainCompleted: 'completed',
  DrainForced: 'forced',
  DrainTimedOut: 'timed_out',
  DrainCancelled: 'cancelled',
  DrainUndone: 'undone',
};

function countDrain({ reason, subject, numbers }: JournalEntry, meters: Meters): void {
  const outcome = Object.hasOwn(DRAIN_OUTCOMES, reason) ? DRAIN_OUTCOMES[reason] : undefined;
  if (outcome === undefined) return;
  const labels = { pool: subject.pool ?? '', outcome };
  meters.add('pvescaler_drains_total', labels);
  const seconds = numbers?.['seconds'];
  if (typeof seconds === 'number')
    meters.observe('pvescaler_drain_duration_seconds', labels, seconds);
}

/** A machine that became ready, or failed before. */
function countProvisioning(entry: JournalEntry, meters: Meters): void {
  const { kind, reason, subject, numbers = {} } = entry;
  const { pool = '' } = subject;
  const { phase, seconds } = numbers;
  if (kind === 'failed' && typeof phase === 'string')
    meters.add('pvescaler_machine_failures_total', { pool, phase, reason });
  if (reason !== 'MachineReady') return;
  if (typeof seconds === 'number')
    meters.observe('pvescaler_provisioning_duration_seconds', { pool }, seconds);
  for (const one of PROVISIONING_PHASES) {
    const spent = numbers[`${one}Seconds`];
    if (typeof spent !== 'number') continue;
    meters.observe('pvescaler_provisioning_phase_duration_seconds', { pool, phase: one }, spent);
  }
}

function logEntry({ kind, reason, message, subject, numbers }: JournalEntry, log: Log): void {
  log[levelOf(kind, reason)](message, { kind, reason, ...subject, ...(numbers && { numbers }) });
}

/** A reason may be an error code. */
function levelOf(kind: JournalKind, reason: string): Level {
  const level = Object.hasOwn(LEVELS_BY_REASON, reason) ? LEVELS_BY_REASON[reason] : undefined;
  if (level !== undefined) return level;
  const error = Object.entries(ERROR_CODES).find(([code]) => code === reason)?.[1];
  return error !== undefined && OPERATOR_CLASSES.has(error.class) ? 'error' : LEVELS[kind];
}
