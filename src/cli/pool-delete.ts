// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { CommandHost } from './context.ts';
import { withDeleteOptions } from './machine-delete.ts';
import type { PoolDeleteOptions } from './run-pool-delete.ts';
import { withFleet } from './with-fleet.ts';

export function addPoolDelete(parent: Command, host: CommandHost): void {
  const command = parent
    .command('delete')
    .description('drain and delete all machines of a pool that is no longer in the config')
    .argument('<pool>', 'name of the pool')
    .option('--yes', 'do it; without it the machines are only shown');
  withDeleteOptions(command).action((name: string, options: PoolDeleteOptions) =>
    withFleet(host, options, {
      access: options.yes === true ? 'drive' : 'read',
      use: async (open) => {
        const { deletePool } = await import('./run-pool-delete.ts');
        await deletePool(host, open, { name, options });
      },
    }),
  );
}
