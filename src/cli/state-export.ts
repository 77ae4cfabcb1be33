// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { formatCount } from '../model/format-text.ts';
import type { Store } from '../ports/store.ts';
import type { CommandHost } from './context.ts';
import { withoutDriver } from './exclude-driver.ts';
import { formatStateDocument } from './state-document.ts';
import { countRecords, readJournal, readRecords } from './transfer-state.ts';
import { type StoreOptions, withStore, withStoreOptions } from './with-store.ts';
import { writeResult } from './write-result.ts';

interface ExportOptions extends StoreOptions {
  readonly journal?: true;
  readonly live?: true;
  readonly force?: true;
}

export function addStateExport(parent: Command, host: CommandHost): void {
  const command = parent
    .command('export')
    .description('write all records as one JSON document, for another store or as a backup')
    .argument('[file]', 'file to write; default standard output');
  withStoreOptions(command)
    .option('--journal', 'include the journal')
    .option('--live', 'also while a driver is active; what it changes afterwards is not included')
    .option('--force', 'overwrite an existing file')
    .action((file: string | undefined, options: ExportOptions) =>
      withStore(host, options, async (open) => {
        const { context } = host;
        const read = () => exportFrom(open.store, options, context.clock.now());
        const { text, summary } =
          options.live === true ? await read() : await withoutDriver(host, open, read);
        await writeResult(context, text, {
          ...(file !== undefined && { output: file }),
          ...(options.force && { force: options.force }),
        });
        context.err(`${summary}\n`);
      }),
    );
}

async function exportFrom(store: Store, { journal }: ExportOptions, now: number) {
  const identity = await store.identity();
  const records = await readRecords(store);
  const content = {
    identity,
    records,
    ...(journal === true && { journal: await readJournal(store) }),
  };
  const { machines, intents } = countRecords(records);
  return {
    text: formatStateDocument(content, now),
    summary: `exported ${formatCount(machines, 'machine')} and ${formatCount(intents, 'intent')}`,
  };
}
