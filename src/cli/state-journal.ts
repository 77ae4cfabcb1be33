// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { InvalidRequest } from '../ports/errors.ts';
import type { JournalRecord } from '../ports/journal.ts';
import type { CommandHost } from './context.ts';
import { type StoreOptions, withStore, withStoreOptions } from './with-store.ts';

interface JournalOptions extends StoreOptions {
  readonly pool?: string;
  readonly machine?: string;
  readonly node?: string;
  readonly limit: string;
  readonly json?: true;
}

export function addStateJournal(parent: Command, host: CommandHost): void {
  withStoreOptions(
    parent.command('journal').description('what was done or refused, and why, oldest first'),
  )
    .option('--pool <name>', 'only what concerns this pool')
    .option('--machine <id>', 'only what concerns this machine')
    .option('--node <name>', 'only what concerns this node')
    .option('--limit <number>', 'at most so many, the newest', '100')
    .option('--json', 'one JSON object per line')
    .action((options: JournalOptions) =>
      withStore(host, options, async (store) => {
        const { pool, machine, node } = options;
        const records = await store.journal.read({
          limit: positive(options.limit),
          ...(pool !== undefined && { pool }),
          ...(machine !== undefined && { machine }),
          ...(node !== undefined && { node }),
        });
        const line =
          options.json === true ? (record: JournalRecord) => JSON.stringify(record) : text;
        host.context.out(records.map((record) => `${line(record)}\n`).join(''));
        if (records.length === 0) host.context.err('The journal has nothing on that.\n');
      }),
    );
}

function positive(value: string): number {
  const number = Number(value);
  if (Number.isInteger(number) && number > 0) return number;
  throw new InvalidRequest('USAGE', `--limit takes a whole number from 1 on, not '${value}'`);
}

function text({ at, kind, reason, message, subject }: JournalRecord): string {
  const about = Object.entries(subject).map(([noun, name]) => `${noun} ${name}`);
  return `${new Date(at).toISOString()}  ${kind.padEnd(7)}  ${reason}: ${message}  (${about.join(', ')})`;
}
