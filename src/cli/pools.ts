// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { FleetStatus, PoolStatus, RemovedPool } from '../fleet/index.ts';
import { countsTowardsTarget } from '../model/machine.ts';
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
          const status = await fleet.status();
          host.context.out(options.json === true ? toJson(status) : render(status));
        },
      }),
    );
}

function toJson({ pools, removedPools }: FleetStatus): string {
  const removed = removedPools.map(({ name, machines }) => ({
    name,
    inConfig: false,
    machines: machines.map(({ id }) => id),
  }));
  const shown = [...pools.map((pool) => ({ ...pool, inConfig: true })), ...removed];
  return `${JSON.stringify(shown, null, 2)}\n`;
}

function countIn({ machines }: RemovedPool, ...phases: readonly string[]): string {
  return String(machines.filter(({ phase }) => phases.includes(phase)).length);
}

function renderRemoved(pool: RemovedPool): readonly string[] {
  const target = pool.machines.filter(({ phase }) => countsTowardsTarget(phase)).length;
  const deleting = countIn(pool, 'deleting', 'draining');
  const text = 'not in the config: see orphans for the commands that delete its machines';
  return [pool.name, String(target), countIn(pool, 'ready'), deleting, '0', '', text];
}

function render({ pools, removedPools }: FleetStatus): string {
  const rows = pools.map((pool) => [
    pool.name,
    String(pool.target),
    String(pool.ready),
    String(pool.deleting),
    String(pool.failed),
    `${pool.min}-${pool.max}`,
    remark(pool),
  ]);
  const header = ['POOL', 'TARGET', 'READY', 'DELETING', 'FAILED', 'LIMITS', ''];
  return formatTable([header, ...rows, ...removedPools.map(renderRemoved)]);
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
