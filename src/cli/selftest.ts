// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { withOutputOption } from './output-option.ts';
import type { SelftestOptions } from './run-selftest.ts';
import { withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

export function addSelftest(parent: Command, host: CommandHost): void {
  const command = parent
    .command('selftest')
    .description(
      'create one machine beside the target size of a pool, wait until it is ready, remove it, and report the seconds per phase',
    )
    .requiredOption('--pool <pool>', 'the pool');
  withConfigOptions(withOutputOption(withTimeoutOption(command))).action(
    async (options: SelftestOptions) => {
      const { runSelftest } = await import('./run-selftest.ts');
      await withFleet(host, options, {
        access: 'drive',
        use: (open) => runSelftest(host, open, options),
      });
    },
  );
}
