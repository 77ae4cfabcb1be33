// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { PoolStatus } from '../fleet/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { formatTable } from './format-table.ts';
import { withFleet } from './with-fleet.ts';

export function addPools(parent: Command, host: CommandHost): void {
  withConfigOptions(
    parent
      .command('pools')
      .description('list pools with their target, current machines and limits'),
  )
    .option('--json', 'print JSON')
    .action((options: ConfigOptions & { readonly json?: true }) =>
      withFleet(host, options, {
        access: 'read',
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
    remark(pool),
  ]);
  return formatTable([['POOL', 'TARGET', 'READY', 'DELETING', 'FAILED', 'LIMITS', ''], ...rows]);
}

function remark({ name, missing, lost, backoff }: PoolStatus): string {
  const remarks = [
    ...(missing === 0 ? [] : [`VMs of ${missing} more machines are gone: see orphans`]),
    ...(lost === undefined
      ? []
      : [
          `${lost.machines.length} machines seem lost and are kept: see pool confirm-lost ${name} --dry-run`,
        ]),
    ...(backoff === undefined ? [] : [`backing off: ${backoff.message}`]),
  ];
  return remarks.join('; ');
}
