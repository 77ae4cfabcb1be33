// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withOutputOption } from './output-option.ts';
import type { ConfirmOptions } from './run-pool-confirm-lost.ts';
import { withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

export function addPoolConfirmLost(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('confirm-lost')
      .description(
        'delete the machines of a pool that seem lost and are kept because they are too many, and wait until they are gone',
      )
      .argument('<pool>', 'name of the pool')
      .option('--dry-run', 'only show these machines'),
  );
  withConfigOptions(withOutputOption(command)).action((name: string, options: ConfirmOptions) =>
    withFleet(host, options, {
      access: options.dryRun === true ? 'read' : 'drive',
      use: async (open) => {
        const { confirmLost } = await import('./run-pool-confirm-lost.ts');
        await confirmLost(host, open, { name, options });
      },
    }),
  );
}
