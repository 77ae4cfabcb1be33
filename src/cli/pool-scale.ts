// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { FleetStatus } from '../fleet/index.ts';
import { isPhaseSettled, type Machine } from '../model/machine.ts';
import { InvalidConfig, InvalidRequest, NotFound, TaskFailed } from '../ports/errors.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { chosenSize } from './machine-size.ts';
import type { OpenFleet } from './open-fleet.ts';
import { missingAccess } from './serve/access.ts';
import { type TimeoutOptions, timeoutMsOf, withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';
import { workUntilDone } from './work-until.ts';

interface ScaleOptions extends ConfigOptions, TimeoutOptions {
  readonly to: string;
  readonly size?: string;
  readonly reason: string;
}

/** After so many failures of removing a machine's seed the command ends and says so; other drivers go on trying. */
const MOST_ATTEMPTS = 3;

export function addPoolScale(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('scale')
      .description('make a pool larger or smaller, and see it done')
      .argument('<name>', 'the pool')
      .requiredOption('--to <number>', 'so many machines')
      .option(
        '--size <size>',
        'of new machines: a name, or cpu=N,memory=SIZE, of those the pool has',
      )
      .option('--reason <text>', 'why, for the journal', 'asked for on the command line'),
  );
  withConfigOptions(command).action((name: string, options: ScaleOptions) =>
    withFleet(host, options, { to: 'drive', use: (open) => scale(host, open, { name, options }) }),
  );
}

interface Order {
  readonly name: string;
  readonly options: ScaleOptions;
}

async function scale(host: CommandHost, open: OpenFleet, order: Order): Promise<void> {
  const { name, options } = order;
  const size = wholeNumber(options.to);
  const pool = open.config.pools.find((one) => one.name === name);
  if (pool === undefined) throw new NotFound('POOL_NOT_FOUND', `no pool ${name} in the config`);
  const why = {
    by: 'cli',
    reason: options.reason,
    ...(options.size !== undefined && { size: chosenSize(pool, options.size) }),
  };
  const asked = new Set<string>();
  await workUntilDone(host, open, {
    regions: pool.regions,
    timeoutMs: timeoutMsOf(options),
    isLeft: (machine) => machine.pool === name && !isPhaseSettled(machine),
    ask: async () => {
      const { pools } = await open.fleet.status();
      const target = pools.find((one) => one.name === name)?.target ?? 0;
      if (size > target) requireAccess(open, name);
      for (const id of (await open.fleet.scaleTo(name, size, why)).machines) asked.add(id);
    },
    isDone: async () => {
      const status = await open.fleet.status();
      if (!isOver(status, name)) return false;
      if (targetOf(status, name) <= size) return true;
      // A VM that came to light only now: the pool is larger than was known.
      for (const id of (await open.fleet.scaleTo(name, size, why)).machines) asked.add(id);
      return false;
    },
  });
  await conclude(host, open, { name, asked });
}

function isOver({ machines, openIntents }: FleetStatus, pool: string): boolean {
  const own = machines.filter((machine) => machine.pool === pool);
  return (
    openIntents === 0 && own.every((machine) => isPhaseSettled(machine) || keepsItsSeed(machine))
  );
}

function keepsItsSeed({ phase, seedVolume, attempts }: Machine): boolean {
  return phase === 'ready' && seedVolume !== undefined && attempts >= MOST_ATTEMPTS;
}

function targetOf({ pools }: FleetStatus, name: string): number {
  return pools.find((pool) => pool.name === name)?.target ?? 0;
}

async function conclude(
  host: CommandHost,
  open: OpenFleet,
  { name, asked }: { readonly name: string; readonly asked: ReadonlySet<string> },
): Promise<void> {
  const { machines, pools } = await open.fleet.status();
  const ready = pools.find((pool) => pool.name === name)?.ready ?? 0;
  host.context.out(`pool ${name} has ${ready} machines\n`);
  const failed = machines.filter(({ id, phase }) => phase === 'failed' && asked.has(id));
  const [first] = failed;
  if (first === undefined) {
    return tellLeftSeeds(machines.filter((one) => one.pool === name && keepsItsSeed(one)));
  }
  throw new TaskFailed(
    'TASK_FAILED',
    `${failed.length} of ${asked.size} machines failed: ${first.failure?.message ?? 'no reason kept'}`,
    { hint: `pvescaler machine show ${first.id} tells what was tried.` },
  );
}

function tellLeftSeeds(machines: readonly Machine[]): void {
  if (machines.length === 0) return;
  const volumes = machines.map(({ seedVolume }) => seedVolume).join(', ');
  throw new TaskFailed(
    'TASK_FAILED',
    `seeds of machines that are ready could not be removed: ${volumes}`,
    {
      hint: 'They hold what the machines were told at their first boot. Any other driver tries again.',
    },
  );
}

/** Better refused than waited for: nothing in this process will make such a machine. */
function requireAccess(open: OpenFleet, pool: string): void {
  const missing = missingAccess(open).find((one) => one.pool === pool && one.isFatal);
  if (missing === undefined) return;
  throw new InvalidConfig('CONFIG_INVALID', missing.message, {
    hint: "Name a kubeconfig by cluster.kubeconfig or --kubeconfig, or set 'join: none' for the pool.",
  });
}

function wholeNumber(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new InvalidRequest('USAGE', `--to ${text} is not a number of machines`);
}
