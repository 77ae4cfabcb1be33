// SPDX-License-Identifier: Apache-2.0
import { formatCount } from '../model/format-text.ts';
import type { Store } from '../ports/store.ts';
import type { CommandHost } from './context.ts';
import { withoutDriver } from './exclude-driver.ts';
import { formatStateDocument } from './state-document.ts';
import { countRecords, readJournal, readRecords } from './transfer-state.ts';
import { type StoreOptions, withStore } from './with-store.ts';
import { writeResult } from './write-result.ts';

export interface ExportOptions extends StoreOptions {
  readonly journal?: true;
  readonly live?: true;
  readonly force?: true;
}

export async function runExport(
  host: CommandHost,
  file: string | undefined,
  options: ExportOptions,
): Promise<void> {
  const { context } = host;
  await withStore(host, options, async (open) => {
    const read = () => exportFrom(open.store, options, context.clock.now());
    const { text, summary } =
      options.live === true ? await read() : await withoutDriver(host, open, read);
    await writeResult(context, text, {
      ...(file !== undefined && { output: file }),
      ...(options.force && { force: options.force }),
    });
    context.err(`${summary}\n`);
  });
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
