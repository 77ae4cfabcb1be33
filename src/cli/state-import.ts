// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { CommandHost } from './context.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { type StoreOptions, withStoreOptions } from './with-store.ts';

export function addStateImport(parent: Command, host: CommandHost): void {
  const command = parent
    .command('import')
    .description(
      'write the records of an export into an empty store; needs that no driver is active',
    )
    .argument('[file]', 'file of pvescaler state export; default standard input');
  withStoreOptions(withOutputOption(command)).action(
    async (file: string | undefined, options: StoreOptions & OutputOptions) => {
      const { runImport } = await import('./run-state-import.ts');
      await runImport(host, file, options);
    },
  );
}
