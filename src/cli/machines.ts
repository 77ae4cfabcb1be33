// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { formatAge } from '../model/format-text.ts';
import { addressesOf, isPhaseSettled, type Machine } from '../model/machine.ts';
import type { OpenFleet } from '../setup/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { formatTable } from './format-table.ts';
import { findLastError } from './progress.ts';
import { withFleet } from './with-fleet.ts';

interface MachinesOptions extends ConfigOptions {
  readonly json?: true;
  readonly watch?: true;
  readonly all?: true;
}

const POLL_MS = 500;

export function addMachines(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('machines')
      .description('list machines with their phase, host, VM id and address'),
  )
    .option('--all', 'include machines that are gone')
    .option('--watch', 'print again after every change')
    .option('--json', 'print JSON; with --watch one line per change')
    .action((options: MachinesOptions) =>
      withFleet(host, options, {
        access: 'read',
        use: (open) => showMachines(host, open, options),
      }),
    );
}

async function showMachines(
  host: CommandHost,
  open: OpenFleet,
  options: MachinesOptions,
): Promise<void> {
  const { clock, signal, out } = host.context;
  let revision: number | undefined;
  let last = '';
  do {
    const current = await open.store.revision();
    if (current !== revision) {
      const machines = await listMachines(open, options);
      const errors = options.json === true ? new Map() : await findErrors(open, machines);
      // The revision also changes with leases and journal entries.
      const text = JSON.stringify([machines, ...errors]);
      if (text !== last) out(render(machines, errors, { now: clock.now(), options }));
      last = text;
    }
    revision = current;
    if (options.watch !== true) return;
    await clock.sleep(POLL_MS, { signal }).catch(() => undefined);
  } while (!signal.aborted);
}

async function listMachines(
  { fleet }: OpenFleet,
  { all }: MachinesOptions,
): Promise<readonly Machine[]> {
  const { machines } = await fleet.status();
  return machines.filter(({ phase }) => all === true || phase !== 'gone');
}

type Errors = ReadonlyMap<string, string>;

/** Why machines do not get on. */
async function findErrors(open: OpenFleet, machines: readonly Machine[]): Promise<Errors> {
  const errors = new Map<string, string>();
  for (const machine of machines) {
    if (isPhaseSettled(machine)) continue;
    const error = await findLastError(open, machine);
    if (error !== undefined) errors.set(machine.id, error);
  }
  return errors;
}

function render(
  machines: readonly Machine[],
  errors: Errors,
  { now, options }: { readonly now: number; readonly options: MachinesOptions },
): string {
  if (options.json !== true) return renderTable(machines, errors, now);
  return options.watch === true
    ? `${JSON.stringify(machines)}\n`
    : `${JSON.stringify(machines, null, 2)}\n`;
}

function renderTable(machines: readonly Machine[], errors: Errors, now: number): string {
  const rows = machines.map((machine) => {
    const { id, pool, phase, phaseSince, placement, failure } = machine;
    return [
      placement?.name ?? '-',
      pool,
      phase,
      formatAge(now - phaseSince),
      placement?.host ?? '-',
      placement === undefined ? '-' : String(placement.vmId),
      addressesOf(machine).join(','),
      failure?.message ?? errors.get(id) ?? '',
      id,
    ];
  });
  const head = ['NAME', 'POOL', 'PHASE', 'SINCE', 'HOST', 'VM', 'ADDRESS', 'REASON', 'ID'];
  return formatTable([head, ...rows]);
}
