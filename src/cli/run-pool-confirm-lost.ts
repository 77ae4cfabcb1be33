// SPDX-License-Identifier: Apache-2.0
import type { Machine, MachineId } from '../model/machine.ts';
import { InvalidRequest, NotFound } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { ConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { displayName, formatGone } from './format-machines.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects, type TableFormat } from './print-objects.ts';
import { isRequestOpen, runUntilDone } from './run-until-done.ts';
import { parseTimeoutMs, type TimeoutOptions } from './timeout-option.ts';

export interface ConfirmOptions extends ConfigOptions, TimeoutOptions, OutputOptions {
  readonly dryRun?: true;
}

const REASON = 'confirmed as lost';

interface ConfirmRequest {
  readonly name: string;
  readonly options: ConfirmOptions;
}

export async function confirmLost(
  host: CommandHost,
  open: OpenFleet,
  { name, options }: ConfirmRequest,
): Promise<void> {
  const print = (lost: KeptAsLost) =>
    printObjects(host, options, {
      value: lost,
      names: lost.machines.map(displayName),
      text: (format) => render(lost.machines, format),
    });
  const first = await readLost(open, name);
  if (options.dryRun === true) return print(first);
  const ids = new Set<MachineId>();
  const isUnfinished = ({ id, phase }: Machine) =>
    ids.has(id) && phase !== 'gone' && phase !== 'failed';
  await runUntilDone(host, open, {
    regions: open.config.pools.find((pool) => pool.name === name)?.regions ?? [],
    timeoutMs: parseTimeoutMs(options),
    passesBeforeSubmit: 2,
    isUnfinished,
    submit: async () => {
      // Machines may have come back since the last driver: the first pass finds them, the next one begins after that.
      const lost = await readLost(open, name);
      await print(lost);
      for (const { id } of lost.machines) ids.add(id);
      await open.fleet.remove([...ids], { by: 'cli', reason: REASON });
    },
    isDone: async () => {
      const { machines } = await open.fleet.status();
      return !machines.some(isUnfinished) && !isRequestOpen(open.fleet, ids);
    },
  });
  if (options.output === 'table') host.context.out(`${formatGone(ids.size)}\n`);
}

interface KeptAsLost {
  readonly since: number;
  readonly machines: readonly Machine[];
}

async function readLost({ config, fleet }: OpenFleet, name: string): Promise<KeptAsLost> {
  const { pools, machines } = await fleet.status();
  const pool = pools.find((each) => each.name === name);
  if (pool === undefined)
    throw new NotFound('POOL_NOT_FOUND', `the config has no pool ${name}`, {
      hint: `It has ${config.pools.map((each) => each.name).join(', ')}.`,
    });
  if (pool.lost === undefined)
    throw new InvalidRequest('REQUEST_INVALID', `no machine of pool ${name} is kept as lost`, {
      hint: 'To delete a machine whatever its state, run pvescaler machine delete.',
    });
  const ids = new Set(pool.lost.machines);
  return { since: pool.lost.since, machines: machines.filter(({ id }) => ids.has(id)) };
}

function render(machines: readonly Machine[], format: TableFormat): string {
  const rows = machines.map(({ id, placement, nodeName }) => [
    placement?.name ?? '',
    id,
    placement === undefined ? '' : `${placement.region}/${placement.vmId}`,
    nodeName ?? '',
  ]);
  return format.table(['MACHINE', 'ID', 'VM', 'NODE'], rows);
}
