// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withDrainOptions } from './drain-options.ts';
import { withOutputOption } from './output-option.ts';
import type { ScaleOptions } from './run-pool-scale.ts';
import { withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

export function addPoolScale(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('scale')
      .description('change the number of machines of a pool, and wait until it is reached')
      .argument('<pool>', 'name of the pool')
      .requiredOption('--to <number>', 'number of machines')
      .option(
        '--size <size>',
        'size of new machines, one of the pool: a name, or cpu=N,memory=SIZE; in mode externalgrpc it selects the node group to scale',
      )
      .option('--reason <text>', 'reason for the journal', 'requested on the command line'),
  );
  withConfigOptions(withOutputOption(withDrainOptions(command))).action(
    (name: string, options: ScaleOptions) =>
      withFleet(host, options, {
        access: 'drive',
        checksTokens: options.to !== '0',
        use: async (open) => {
          const { scalePool } = await import('./run-pool-scale.ts');
          await scalePool(host, open, { name, options });
        },
      }),
  );
}
