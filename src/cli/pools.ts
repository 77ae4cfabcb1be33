// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { PoolStatus } from '../fleet/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { table } from './table.ts';
import { withFleet } from './with-fleet.ts';

export function addPools(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('pools')
      .description('the pools: how many machines they have, want and may have'),
  )
    .option('--json', 'as JSON')
    .action((options: ConfigOptions & { readonly json?: true }) =>
      withFleet(host, options, {
        to: 'look',
        use: async ({ fleet }) => {
          const { pools } = await fleet.status();
          host.context.out(
            options.json === true ? `${JSON.stringify(pools, null, 2)}\n` : render(pools),
          );
        },
      }),
    );
}

function render(pools: readonly PoolStatus[]): string {
  const rows = pools.map((pool) => [
    pool.name,
    String(pool.target),
    String(pool.ready),
    String(pool.deleting),
    String(pool.failed),
    `${pool.min}-${pool.max}`,
    pool.backoff === undefined ? '' : `backed off: ${pool.backoff.message}`,
  ]);
  return table([['POOL', 'TARGET', 'READY', 'LEAVING', 'FAILED', 'LIMITS', ''], ...rows]);
}
