// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { formatAge } from '../model/format-text.ts';
import { addressesOf, isPhaseSettled, type Machine } from '../model/machine.ts';
import type { OpenFleet } from '../setup/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { findLastError } from './find-last-error.ts';
import { displayName } from './format-machines.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { printObjects, type TableFormat } from './print-objects.ts';
import { withFleet } from './with-fleet.ts';

interface MachinesOptions extends ConfigOptions, OutputOptions {
  readonly watch?: true;
  readonly all?: true;
}

const POLL_MS = 500;

export function addMachines(parent: Command, host: CommandHost): void {
  const command = parent
    .command('machines')
    .description('list machines with their phase, host, VM id and address')
    .option('--all', 'include machines that are gone')
    .option('--watch', 'print again after every change; as JSON, one line per change');
  withConfigOptions(withOutputOption(command)).action((options: MachinesOptions) =>
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
  const { clock, signal } = host.context;
  let revision: number | undefined;
  let last = '';
  do {
    const current = await open.store.revision();
    if (current !== revision) {
      const machines = await listMachines(open, options);
      const errors = options.output === 'table' ? await findErrors(open, machines) : NO_ERRORS;
      // The revision also changes with leases and journal entries.
      const text = JSON.stringify([machines, ...errors]);
      if (text !== last) await print(host, { machines, errors }, options);
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

const NO_ERRORS: Errors = new Map();

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

interface ShownMachines {
  readonly machines: readonly Machine[];
  readonly errors: Errors;
}

async function print(
  host: CommandHost,
  { machines, errors }: ShownMachines,
  options: MachinesOptions,
): Promise<void> {
  const now = host.context.clock.now();
  await printObjects(host, options, {
    value: machines,
    isStream: options.watch === true,
    names: machines.map(displayName),
    text: (format) => renderTable({ machines, errors }, now, format),
  });
}

function renderTable(
  { machines, errors }: ShownMachines,
  now: number,
  format: TableFormat,
): string {
  const rows = machines.map((machine) => {
    const { id, pool, phase, phaseSince, placement, failure } = machine;
    return [
      displayName(machine),
      pool,
      phase,
      formatAge(now - phaseSince),
      placement?.host ?? '-',
      placement === undefined ? '-' : String(placement.vmId),
      addressesOf(machine).join(',') || '-',
      failure?.message ?? errors.get(id) ?? '',
    ];
  });
  const head = ['NAME', 'POOL', 'PHASE', 'SINCE', 'HOST', 'VM', 'ADDRESS', 'REASON'];
  return format.table(head, rows);
}
