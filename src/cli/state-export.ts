// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { CommandHost } from './context.ts';
import type { ExportOptions } from './run-state-export.ts';
import { withStoreOptions } from './with-store.ts';

export function addStateExport(parent: Command, host: CommandHost): void {
  const command = parent
    .command('export')
    .description('write all records as one JSON document, for another store or as a backup')
    .argument('[file]', 'file to write; default standard output');
  withStoreOptions(command)
    .option('--journal', 'include the journal')
    .option('--live', 'also while a driver is active; what it changes afterwards is not included')
    .option('--force', 'overwrite an existing file')
    .action(async (file: string | undefined, options: ExportOptions) => {
      const { runExport } = await import('./run-state-export.ts');
      await runExport(host, file, options);
    });
}
