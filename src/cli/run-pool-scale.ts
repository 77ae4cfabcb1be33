// SPDX-License-Identifier: Apache-2.0
import type { PoolConfig } from '../config/index.ts';
import type { FleetStatus } from '../fleet/index.ts';
import { formatCount } from '../model/format-text.ts';
import {
  countsTowardsTarget,
  isPhaseSettled,
  type Machine,
  type MachineSize,
} from '../model/machine.ts';
import { ERROR_CODES, isErrorCode } from '../ports/error-codes.ts';
import {
  deserializeError,
  InvalidConfig,
  InvalidRequest,
  NotFound,
  type PvescalerError,
  TaskFailed,
} from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import { findMissingAccess } from '../setup/index.ts';
import type { ConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import type { DrainOptions } from './drain-options.ts';
import { parseDrainOptions, requireNoneUndone, undoneDrains } from './drain-results.ts';
import { findLastError } from './find-last-error.ts';
import type { OutputOptions } from './output-option.ts';
import { parsePoolSize } from './parse-pool-size.ts';
import { printObjects } from './print-objects.ts';
import { requireNoVmLeftBehind } from './run-machine-delete.ts';
import { listOpenIntents, runUntilDone } from './run-until-done.ts';
import { parseTimeoutMs, type TimeoutOptions } from './timeout-option.ts';

export interface ScaleOptions extends ConfigOptions, TimeoutOptions, DrainOptions, OutputOptions {
  readonly to: string;
  readonly size?: string;
  readonly reason: string;
}

/** The command stops waiting for a seed that could not be deleted so often; other drivers keep trying. */
const MAX_SEED_ATTEMPTS = 3;

interface ScaleRequest {
  readonly name: string;
  readonly options: ScaleOptions;
}

export async function scalePool(
  host: CommandHost,
  open: OpenFleet,
  request: ScaleRequest,
): Promise<void> {
  const { name, options } = request;
  const size = parseMachineCount(options.to);
  const pool = open.config.pools.find((each) => each.name === name);
  if (pool === undefined)
    throw new NotFound('POOL_NOT_FOUND', `the config has no pool ${name}`, {
      hint: `It has ${open.config.pools.map((each) => each.name).join(', ')}.`,
    });
  const machineSize = options.size === undefined ? undefined : parsePoolSize(pool, options.size);
  const nodeGroup = findNodeGroup(pool, machineSize);
  const requestReason = {
    by: 'cli',
    reason: options.reason,
    drain: parseDrainOptions(options),
    ...(machineSize !== undefined && { size: machineSize, nodeGroup }),
  };
  const part = { name, nodeGroup, size: machineSize };
  const requested = new Set<string>();
  const intents = new Set<string>();
  const known = new Set<string>();
  const countOthers = (status: FleetStatus) =>
    status.machines.filter((machine) => isRequestedByOther(machine, { part, known, requested }))
      .length;
  const scale = async () => {
    const { intent, machines } = await open.fleet.scaleTo(name, size, requestReason);
    if (intent !== undefined) intents.add(intent);
    for (const id of machines) requested.add(id);
  };
  await runUntilDone(host, open, {
    regions: pool.regions,
    timeoutMs: parseTimeoutMs(options),
    isUnfinished: (machine) => machine.pool === name && !isPhaseSettled(machine),
    submit: async () => {
      const status = await open.fleet.status();
      for (const { id } of status.machines) known.add(id);
      if (size > (countPart(status, part)?.target ?? 0)) requireAccess(open, name);
      await scale();
    },
    isDone: async () => {
      const status = await open.fleet.status();
      if (!isSettled(open, status, name)) return false;
      // A pool is scaled once: machines that pods need since then stay.
      if ((countPart(status, part)?.target ?? 0) - countOthers(status) <= size) return true;
      // A machine whose drain was undone is not drained again.
      if (undoneDrains(status, intents).length > 0) return true;
      // A VM was found during the operation: the pool is larger than recorded before.
      await scale();
      return false;
    },
  });
  const others = countOthers(await open.fleet.status());
  await reportResult(host, open, { part, requested, others, output: options.output });
  requireNoneUndone(undoneDrains(await open.fleet.status(), intents));
}

function isSettled({ fleet }: OpenFleet, { machines }: FleetStatus, pool: string): boolean {
  const own = machines.filter((machine) => machine.pool === pool);
  return (
    listOpenIntents(fleet).every((intent) => intent.pool !== pool) &&
    own.every((machine) => isPhaseSettled(machine) || hasUndeletableSeed(machine))
  );
}

function hasUndeletableSeed({ phase, seedVolume, attempts }: Machine): boolean {
  return phase === 'ready' && seedVolume !== undefined && attempts >= MAX_SEED_ATTEMPTS;
}

/** The pool, or one of its node groups. */
interface ScaledPart {
  readonly name: string;
  readonly nodeGroup: string | undefined;
  /** Of the node group. */
  readonly size: MachineSize | undefined;
}

/** Whether the autoscaler or another command has requested it since this command began. */
function isRequestedByOther(
  { id, pool, phase, size, intent, isSelftest }: Machine,
  {
    part,
    known,
    requested,
  }: {
    readonly part: ScaledPart;
    readonly known: ReadonlySet<string>;
    readonly requested: ReadonlySet<string>;
  },
): boolean {
  const isMember = pool === part.name && isSelftest !== true && countsTowardsTarget(phase);
  const isOfPart = part.nodeGroup === undefined || isSameSize(size, part.size);
  return isMember && isOfPart && intent !== undefined && !known.has(id) && !requested.has(id);
}

/** All machines of a node group are alike: with several groups, the size selects one. */
function findNodeGroup(
  { nodeGroups }: PoolConfig,
  size: MachineSize | undefined,
): string | undefined {
  return nodeGroups.find((group) => isSameSize(group.size, size))?.id;
}

function isSameSize(one: MachineSize, other: MachineSize | undefined): boolean {
  return (
    one.cpu === other?.cpu &&
    one.memoryBytes === other.memoryBytes &&
    one.diskBytes === other.diskBytes
  );
}

function countPart({ pools }: FleetStatus, { name, nodeGroup }: ScaledPart) {
  const pool = pools.find((each) => each.name === name);
  return nodeGroup === undefined ? pool : pool?.nodeGroups.find((each) => each.name === nodeGroup);
}

interface ScaleResult extends OutputOptions {
  readonly part: ScaledPart;
  readonly requested: ReadonlySet<string>;
  /** How many machines others have requested meanwhile. */
  readonly others: number;
}

async function reportResult(
  host: CommandHost,
  open: OpenFleet,
  { part, requested, others, output }: ScaleResult,
): Promise<void> {
  const status = await open.fleet.status();
  const { machines } = status;
  const { name, nodeGroup } = part;
  const what = nodeGroup === undefined ? `pool ${name}` : `node group ${nodeGroup}`;
  const ready = countPart(status, part)?.ready ?? 0;
  if (others > 0)
    host.context.err(
      `${what}: ${formatCount(others, 'machine')} ${others === 1 ? 'was' : 'were'} requested meanwhile; pvescaler state journal has the reason\n`,
    );
  await printObjects(
    host,
    { output },
    {
      value: countPart(status, part),
      names: [nodeGroup ?? name],
      text: () => `${what} has ${formatCount(ready, 'machine')}\n`,
    },
  );
  const failed = machines.filter(
    ({ id, phase }) => (phase === 'failed' || phase === 'kept') && requested.has(id),
  );
  if (failed.length > 0) throw failedMachinesError(failed, requested.size);
  await requireNoVmLeftBehind(open, requested);
  await requireNoUndeletableSeed(
    open,
    machines.filter((machine) => machine.pool === name && hasUndeletableSeed(machine)),
  );
}

/** Has the code of the first failure, so that the exit code is that of the cause. */
export function failedMachinesError(
  failed: readonly Machine[],
  requestedCount: number,
): PvescalerError {
  const [first] = failed;
  const { code: cause = '', message: reason = 'no reason recorded' } = first?.failure ?? {};
  const code = isErrorCode(cause) ? cause : 'TASK_FAILED';
  const message = `${failed.length} of ${formatCount(requestedCount, 'machine')} failed: ${reason}`;
  const hint = `${ERROR_CODES[code].hint} Run pvescaler machine show ${first?.id ?? ''} for the details.`;
  return deserializeError({ code, message, hint, facts: {} });
}

async function requireNoUndeletableSeed(
  open: OpenFleet,
  machines: readonly Machine[],
): Promise<void> {
  const [first] = machines;
  if (first === undefined) return;
  const volumes = machines.map(({ seedVolume }) => seedVolume).join(', ');
  const cause = (await findLastError(open, first)) ?? 'see pvescaler state journal';
  throw new TaskFailed(
    'TASK_FAILED',
    `cannot delete the seeds of ready machines: ${volumes}: ${cause}`,
    { hint: 'Seeds contain the join token. Remove the cause; the next driver retries.' },
  );
}

/** Fails at once: no machine could be created, and the command would wait without end. */
export function requireAccess(open: OpenFleet, pool: string): void {
  const missing = findMissingAccess(open).find((each) => each.pool === pool && each.blocksCreation);
  if (missing === undefined) return;
  throw new InvalidConfig('CONFIG_INVALID', missing.message, {
    hint: "Set cluster.kubeconfig or --kubeconfig, or 'join: none' for the pool.",
  });
}

function parseMachineCount(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new InvalidRequest('USAGE', `--to takes a number of machines, not '${text}'`);
}
