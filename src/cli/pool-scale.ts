// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { type DrainOptions, withDrainOptions } from './drain-options.ts';
import { type TimeoutOptions, withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

export interface ScaleOptions extends ConfigOptions, TimeoutOptions, DrainOptions {
  readonly to: string;
  readonly size?: string;
  readonly reason: string;
}

export function addPoolScale(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('scale')
      .description('change the number of machines of a pool, and wait until it is reached')
      .argument('<name>', 'name of the pool')
      .requiredOption('--to <number>', 'number of machines')
      .option(
        '--size <size>',
        'size of new machines, one of the pool: a name, or cpu=N,memory=SIZE',
      )
      .option('--reason <text>', 'reason for the journal', 'requested on the command line'),
  );
  withConfigOptions(withDrainOptions(command)).action((name: string, options: ScaleOptions) =>
    withFleet(host, options, {
      access: 'drive',
      use: async (open) => {
        const { scalePool } = await import('./run-pool-scale.ts');
        await scalePool(host, open, { name, options });
      },
    }),
  );
}
