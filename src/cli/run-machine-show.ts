// SPDX-License-Identifier: Apache-2.0
import { type Drain, formatBlockers } from '../model/drain.ts';
import { formatAge } from '../model/format-text.ts';
import { addressesOf, type Machine } from '../model/machine.ts';
import { roleOf } from '../model/role.ts';
import type { JournalRecord } from '../ports/journal.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { displayName, formatMachineSize } from './format-machines.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects, type TableFormat } from './print-objects.ts';

const MAX_ENTRIES = 50;

export async function showMachine(
  host: CommandHost,
  { store, fleet }: OpenFleet,
  { machine, output }: OutputOptions & { readonly machine: Machine },
): Promise<void> {
  const drain = fleet.view.drains.get(machine.id);
  const journal = await store.journal.read({ machine: machine.id, limit: MAX_ENTRIES });
  const shown = { machine, drain, journal };
  await printObjects(
    host,
    { output },
    {
      value: shown,
      names: [displayName(machine)],
      text: (format) => render(shown, host.context.clock.now(), format),
    },
  );
}

interface Shown {
  readonly machine: Machine;
  readonly drain: Drain | undefined;
  readonly journal: readonly JournalRecord[];
}

function render({ machine, drain, journal }: Shown, now: number, format: TableFormat): string {
  const { placement, failure, deletionReason } = machine;
  const role = roleOf(machine.pool);
  const fields: (readonly [string, string | undefined])[] = [
    ['id', machine.id],
    ['name', placement?.name],
    [role === undefined ? 'pool' : 'role', role ?? machine.pool],
    ['phase', machine.phase],
    [
      'since',
      `${new Date(machine.phaseSince).toISOString()} (${formatAge(now - machine.phaseSince)} ago)`,
    ],
    ['size', formatMachineSize(machine.size)],
    ['region', placement?.region],
    ['host', placement?.host],
    ['vm', placement === undefined ? undefined : String(placement.vmId)],
    ['addresses', addressesOf(machine).join(', ')],
    ['node', machine.nodeName],
    ['provider id', machine.providerId],
    ['seed', machine.seedVolume],
    ['failure', failure === undefined ? undefined : `${failure.message} [${failure.code}]`],
    ['deleted because', deletionReason],
    ...(drain === undefined ? [] : drainFields(drain, machine, now)),
  ];
  const shown = fields.flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, value]],
  );
  const entries = journal.map(({ at, reason, message }) => [
    new Date(at).toISOString(),
    reason,
    message,
  ]);
  const parts = [format.fields(shown), format.fields(entries), formatDiagnostics(machine)];
  return parts.filter((part) => part !== '').join('\n');
}

function formatDiagnostics({ diagnostics }: Machine): string {
  if (diagnostics === undefined) return '';
  const { at, lines, error } = diagnostics;
  const time = new Date(at).toISOString();
  if (error !== undefined) return `the guest could not be examined at ${time}: ${error}\n`;
  return `the guest reported at ${time}:\n${lines.map((line) => `  ${line}\n`).join('')}`;
}

/** The time for a drain begins with the phase `draining`, and stops while no process drives. */
function drainFields(
  drain: Drain,
  { phase, phaseSince }: Machine,
  now: number,
): readonly (readonly [string, string | undefined])[] {
  const { state, requestedAt, requestedBy, reason, timeoutMs, blockedBy, undo } = drain;
  const asked = `${new Date(requestedAt).toISOString()} (${formatAge(now - requestedAt)} ago)`;
  const until = new Date(phaseSince + timeoutMs).toISOString();
  return [
    ['drain', `${state}, requested by ${requestedBy} at ${asked}: ${reason}`],
    ['drain until', phase === 'draining' ? `${until} (${formatAge(timeoutMs)})` : undefined],
    ['drain waits for', formatBlockers(blockedBy)],
    ['drain undone', undo?.message],
  ];
}
