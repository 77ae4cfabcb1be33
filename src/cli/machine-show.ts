// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { Machine } from '../model/machine.ts';
import type { JournalRecord } from '../ports/journal.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { findMachine } from './machine.ts';
import { table } from './table.ts';
import { withFleet } from './with-fleet.ts';

const LAST_ENTRIES = 50;

export function addMachineShow(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('show')
      .description('everything that is recorded of one machine, and what was done about it')
      .argument('<machine>', 'its name, its id, or the beginning of its id'),
  )
    .option('--json', 'as JSON')
    .action((text: string, options: ConfigOptions & { readonly json?: true }) =>
      withFleet(host, options, {
        to: 'look',
        use: async (open) => {
          const machine = await findMachine(open, text);
          const journal = await open.store.journal.read({
            machine: machine.id,
            limit: LAST_ENTRIES,
          });
          host.context.out(
            options.json === true
              ? `${JSON.stringify({ machine, journal }, null, 2)}\n`
              : render(machine, journal),
          );
        },
      }),
    );
}

function render(machine: Machine, journal: readonly JournalRecord[]): string {
  const { placement, failure, deletionReason } = machine;
  const facts: (readonly [string, string | undefined])[] = [
    ['id', machine.id],
    ['name', placement?.name],
    ['pool', machine.pool],
    ['phase', machine.phase],
    ['since', new Date(machine.phaseSince).toISOString()],
    ['size', sizeText(machine.size)],
    ['region', placement?.region],
    ['host', placement?.host],
    ['vm', placement === undefined ? undefined : String(placement.vmId)],
    ['addresses', placement?.addresses.join(', ')],
    ['node', machine.nodeName],
    ['provider id', machine.providerId],
    ['seed', machine.seedVolume],
    ['failure', failure === undefined ? undefined : `${failure.message} [${failure.code}]`],
    ['leaves', deletionReason],
  ];
  const shown = facts.flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, value]],
  );
  const entries = journal.map(({ at, reason, message }) => [
    new Date(at).toISOString(),
    reason,
    message,
  ]);
  return entries.length === 0 ? table(shown) : `${table(shown)}\n${table(entries)}`;
}

function sizeText({ cpu, memoryBytes, diskBytes }: Machine['size']): string {
  const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
  return `${cpu} CPUs, ${mebibytes(memoryBytes)}, disk ${mebibytes(diskBytes)}`;
}
