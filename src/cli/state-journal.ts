// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
import type { JournalRecord } from '../ports/journal.ts';
import type { Store } from '../ports/store.ts';
import type { CommandHost } from './context.ts';
import { findMachineIn, MACHINE_ARGUMENT } from './find-machine.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { printObjects } from './print-objects.ts';
import { type StoreOptions, withStore, withStoreOptions } from './with-store.ts';

interface JournalOptions extends StoreOptions, OutputOptions {
  readonly pool?: string;
  readonly machine?: string;
  readonly node?: string;
  readonly limit: string;
}

export function addStateJournal(parent: Command, host: CommandHost): void {
  const command = parent
    .command('journal')
    .description('print the journal of actions, refusals and failures, oldest first');
  withStoreOptions(withOutputOption(command))
    .option('--pool <pool>', 'entries about this pool')
    .option('--machine <machine>', `entries about this machine: ${MACHINE_ARGUMENT}`)
    .option('--node <node>', 'entries about this Node')
    .option('--limit <number>', 'maximum number of entries, the newest', '100')
    .action((options: JournalOptions) =>
      withStore(host, options, async ({ store }) => {
        const { pool, node } = options;
        const machine = await machineIdOf(store, options.machine);
        const records = await store.journal.read({
          limit: parseLimit(options.limit),
          ...(pool !== undefined && { pool }),
          ...(machine !== undefined && { machine }),
          ...(node !== undefined && { node }),
        });
        await printObjects(host, options, {
          value: records,
          names: [...new Set(records.flatMap(({ subject }) => Object.values(subject)))],
          text: () => records.map((record) => `${formatEntry(record)}\n`).join(''),
        });
        if (records.length === 0) host.context.err('The journal has no such entries.\n');
      }),
    );
}

/** The journal keeps entries for longer than records: an id without a record is used as it is. */
async function machineIdOf(store: Store, text: string | undefined): Promise<string | undefined> {
  if (text === undefined) return undefined;
  const machines = (await store.machines.list()).map(({ value }) => value);
  try {
    return findMachineIn(machines, text).id;
  } catch (error) {
    if (error instanceof NotFound) return text;
    throw error;
  }
}

function parseLimit(value: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && number > 0) return number;
  throw new InvalidRequest('USAGE', `--limit takes a whole number above 0, not '${value}'`);
}

function formatEntry({ at, kind, reason, message, subject }: JournalRecord): string {
  const subjects = Object.entries(subject).map(([noun, name]) => `${noun} ${name}`);
  return `${new Date(at).toISOString()}  ${kind.padEnd(7)}  ${reason}: ${message}  (${subjects.join(', ')})`;
}
