// SPDX-License-Identifier: Apache-2.0
import type { RemovedPool } from '../fleet/index.ts';
import { formatCount } from '../model/format-text.ts';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { CommandHost } from './context.ts';
import { displayName } from './format-machines.ts';
import { printObjects } from './print-objects.ts';
import { type DeleteOptions, deleteMachines, requireNoVmLeftBehind } from './run-machine-delete.ts';

export interface PoolDeleteOptions extends DeleteOptions {
  readonly yes?: true;
}

interface PoolDeletion {
  readonly name: string;
  readonly options: PoolDeleteOptions;
}

export async function deletePool(
  host: CommandHost,
  open: OpenFleet,
  { name, options }: PoolDeletion,
): Promise<void> {
  requireRemoved(open, name);
  if (options.yes !== true) return show(host, await findPool(open, name), options);
  const ids = await deleteMachines(host, open, {
    regions: Object.keys(open.config.regions),
    select: async () => (await findPool(open, name)).machines,
    options,
  });
  await requireNoVmLeftBehind(open, ids);
}

function requireRemoved({ config }: OpenFleet, name: string): void {
  if (config.pools.every((pool) => pool.name !== name)) return;
  throw new InvalidRequest('REQUEST_INVALID', `pool ${name} is in the config`, {
    hint: `Remove it from the config file or delete its ProxmoxPool first, or delete its machines with pvescaler pool scale ${name} --to 0.`,
  });
}

async function findPool({ fleet }: OpenFleet, name: string): Promise<RemovedPool> {
  const { removedPools } = await fleet.status();
  const pool = removedPools.find((each) => each.name === name);
  if (pool !== undefined) return pool;
  throw new NotFound('POOL_NOT_FOUND', `no machine belongs to a pool ${name}`, {
    hint: 'pvescaler pools lists all pools that have machines.',
  });
}

async function show(
  host: CommandHost,
  { name, machines }: RemovedPool,
  options: PoolDeleteOptions,
): Promise<void> {
  const rows = machines.map(({ id, phase, placement, nodeName = '' }) => [
    placement?.name ?? '',
    phase,
    placement === undefined ? '' : `${placement.region}/${placement.vmId}`,
    nodeName,
    id,
  ]);
  const count = formatCount(machines.length, 'machine');
  const remark = `nothing was changed; add --yes to delete the ${count} of pool ${name}\n`;
  await printObjects(host, options, {
    value: machines,
    names: machines.map(displayName),
    text: (format) => `${format.table(['MACHINE', 'PHASE', 'VM', 'NODE', 'ID'], rows)}${remark}`,
  });
}
