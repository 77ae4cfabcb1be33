// SPDX-License-Identifier: Apache-2.0
import type { FleetStatus, PoolStatus, RemovedPool } from '../fleet/index.ts';
import { formatCount } from '../model/format-text.ts';
import { countsTowardsTarget, type Machine } from '../model/machine.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { findLastError } from './find-last-error.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects, type TableFormat } from './print-objects.ts';

export async function listPools(
  host: CommandHost,
  open: OpenFleet,
  options: OutputOptions,
): Promise<void> {
  const status = await open.fleet.status({ readsProxmox: true });
  warnUnread(host, status);
  const waiting = await findWaiting(open, status.machines);
  const value = toValue(status);
  await printObjects(host, options, {
    value,
    names: value.map(({ name }) => name),
    text: (format) => render(status, waiting, format),
  });
}

/** What exists is counted; where Proxmox cannot be read, the records are. */
function warnUnread({ context }: CommandHost, { pools }: FleetStatus): void {
  const unread = new Map(pools.flatMap((pool) => Object.entries(pool.unread)));
  for (const [region, why] of unread) {
    context.err(
      `warning: region ${region} cannot be read, so its machines are counted from the records: ${why}\n`,
    );
  }
}

function toValue({ pools, removedPools }: FleetStatus) {
  const removed = removedPools.map(({ name, machines }) => ({
    name,
    inConfig: false,
    machines: machines.map(({ id }) => id),
  }));
  return [...pools.map((pool) => ({ ...pool, inConfig: true })), ...removed];
}

function countIn({ machines }: RemovedPool, ...phases: readonly string[]): number {
  return machines.filter(({ phase }) => phases.includes(phase)).length;
}

function renderRemoved(pool: RemovedPool): readonly string[] {
  const { name, machines, missing } = pool;
  const target = machines.filter(({ phase }) => countsTowardsTarget(phase)).length - missing;
  const ready = countIn(pool, 'ready') - missing;
  const deleting = countIn(pool, 'deleting', 'draining');
  const remarks = [
    `not in the config: pool delete ${name} deletes its machines`,
    ...missingRemark(missing),
  ];
  return [name, String(target), String(ready), String(deleting), '0', '', remarks.join('; ')];
}

/** Why machines of a pool are not created yet, by pool. */
async function findWaiting(
  open: OpenFleet,
  machines: readonly Machine[],
): Promise<ReadonlyMap<string, string>> {
  const waiting = new Map<string, string>();
  for (const [pool, requested] of Map.groupBy(
    machines.filter(({ phase }) => phase === 'requested'),
    (machine) => machine.pool,
  )) {
    const [first] = requested;
    const error = first === undefined ? undefined : await findLastError(open, first);
    if (error !== undefined) {
      const verb = requested.length === 1 ? 'waits' : 'wait';
      waiting.set(pool, `${formatCount(requested.length, 'machine')} ${verb}: ${error}`);
    }
  }
  return waiting;
}

function render(
  { pools, removedPools }: FleetStatus,
  waiting: ReadonlyMap<string, string>,
  format: TableFormat,
): string {
  const rows = pools.map((pool) => [
    pool.name,
    String(pool.target),
    String(pool.ready),
    String(pool.deleting),
    String(pool.failed),
    `${pool.limits.min}-${pool.limits.max}`,
    remark(pool, waiting.get(pool.name)),
  ]);
  const head = ['POOL', 'TARGET', 'READY', 'DELETING', 'FAILED', 'LIMITS', 'REMARK'];
  return format.table(head, [...rows, ...removedPools.map(renderRemoved)]);
}

function missingRemark(missing: number): readonly string[] {
  if (missing === 0) return [];
  return [`VMs of ${formatCount(missing, 'more machine')} are gone: see orphans`];
}

function remark(pool: PoolStatus, waiting: string | undefined): string {
  const { name, limits, target, atLimit, nodeGroups, missing, lost, backoff, pause } = pool;
  const remarks = [
    ...(nodeGroups.length === 0
      ? []
      : [nodeGroups.map((group) => `${group.name} ${group.target}`).join(', ')]),
    ...missingRemark(missing),
    ...(atLimit === undefined || target >= limits.max ? [] : [atLimit]),
    ...(lost === undefined
      ? []
      : [
          `${formatCount(lost.machines.length, 'machine')} ${lost.machines.length === 1 ? 'seems lost and is' : 'seem lost and are'} kept: see pool confirm-lost ${name} --dry-run`,
        ]),
    ...(pause === undefined ? [] : [`paused (pool resume ${name} ends it): ${pause.reason}`]),
    ...(backoff === undefined ? [] : [`backing off: ${backoff.message}`]),
    ...(waiting === undefined ? [] : [waiting]),
  ];
  return remarks.join('; ');
}
