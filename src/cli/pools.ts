// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { type OutputOptions, withOutputOption } from './output-option.ts';
import { withFleet } from './with-fleet.ts';

export function addPools(parent: Command, host: CommandHost): void {
  const command = parent
    .command('pools')
    .description('list pools with their target, current machines and limits');
  withConfigOptions(withOutputOption(command)).action((options: ConfigOptions & OutputOptions) =>
    withFleet(host, options, {
      access: 'view',
      use: async (open) => {
        const { listPools } = await import('./run-pools.ts');
        await listPools(host, open, options);
      },
    }),
  );
}
