// SPDX-License-Identifier: Apache-2.0
import { formatCount } from '../model/format-text.ts';
import { InvalidRequest } from '../ports/errors.ts';
import type { CommandHost } from './context.ts';
import { withoutDriver } from './exclude-driver.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects } from './print-objects.ts';
import { parseStateDocument } from './state-document.ts';
import { countRecords, importState } from './transfer-state.ts';
import { type StoreOptions, withStore } from './with-store.ts';

const STANDARD_INPUT = '/dev/stdin';

export async function runImport(
  host: CommandHost,
  file: string | undefined,
  options: StoreOptions & OutputOptions,
): Promise<void> {
  const name = file ?? 'standard input';
  const document = parseStateDocument(await readText(host, file ?? STANDARD_INPUT), name);
  await withStore(host, { ...options, mayCreate: true }, async (open) => {
    const { store, location } = open;
    const outcome = await withoutDriver(host, open, (fence) => importState(store, document, fence));
    const records = countRecords(document.records);
    await printObjects(host, options, {
      value: { location, records, ...outcome },
      names: [location],
      text: () =>
        `imported ${formatCount(records.machines, 'machine')} and ${formatCount(records.intents, 'intent')} into ${location}: ${formatCount(outcome.created, 'record')} written, ${outcome.unchanged} there already\n`,
    });
  });
}

async function readText({ context }: CommandHost, path: string): Promise<string> {
  const text = await context.files.read(path).catch((cause: unknown) => {
    throw new InvalidRequest('REQUEST_INVALID', `cannot read ${path}: ${String(cause)}`, { cause });
  });
  if (text !== undefined) return text;
  throw new InvalidRequest('REQUEST_INVALID', `${path} does not exist`, {
    hint: 'Give the path of a file that pvescaler state export wrote.',
  });
}
