// SPDX-License-Identifier: Apache-2.0
// Requests a selftest machine and waits until it is removed again. The driver removes it when it is ready or has failed,
// also after the end of this process.
import { type Machine, type MachineId, PHASES, type Phase } from '../model/machine.ts';
import { NotFound } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { ConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { displayName } from './format-machines.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects } from './print-objects.ts';
import { failedMachinesError, requireAccess } from './run-pool-scale.ts';
import { runUntilDone } from './run-until-done.ts';
import { parseTimeoutMs, type TimeoutOptions } from './timeout-option.ts';

export interface SelftestOptions extends ConfigOptions, TimeoutOptions, OutputOptions {
  readonly pool: string;
}

export async function runSelftest(
  host: CommandHost,
  open: OpenFleet,
  options: SelftestOptions,
): Promise<void> {
  const pool = open.config.pools.find(({ name }) => name === options.pool);
  if (pool === undefined) {
    throw new NotFound('POOL_NOT_FOUND', `the config has no pool ${options.pool}`, {
      hint: `It has ${open.config.pools.map(({ name }) => name).join(', ')}.`,
    });
  }
  requireAccess(open, pool.name);
  let id: MachineId | undefined;
  const find = async () => (await open.fleet.status()).machines.find((one) => one.id === id);
  try {
    await runUntilDone(host, open, {
      regions: pool.regions,
      timeoutMs: parseTimeoutMs(options),
      isUnfinished: (machine) => machine.id === id,
      submit: async () => {
        const accepted = await open.fleet.selftest(pool.name, { by: 'cli', reason: 'selftest' });
        [id] = accepted.machines;
      },
      isDone: async () => isOver(await find()),
    });
  } catch (error) {
    // Interrupted: the request is durable, and so is its withdrawal.
    if (id !== undefined && !isOver(await find())) {
      await open.fleet.remove([id], { by: 'cli', reason: 'the selftest was interrupted' });
    }
    throw error;
  }
  await report(host, await find(), options);
}

function isOver(machine: Machine | undefined): boolean {
  return machine?.phase === 'gone' || machine?.phase === 'failed';
}

async function report(
  host: CommandHost,
  machine: Machine | undefined,
  { output, pool }: SelftestOptions,
): Promise<void> {
  if (machine === undefined) return;
  const phases = measurePhases(machine);
  const { placement, failure, diagnostics } = machine;
  const { name, host: at, vmId } = placement ?? {};
  const isPassed = failure === undefined && machine.phaseTimes?.ready !== undefined;
  const rows = Object.entries(phases).map(([phase, seconds]) => [phase, seconds.toFixed(1)]);
  await printObjects(
    host,
    { output },
    {
      value: { pool, isPassed, name, host: at, vmId, seconds: phases, failure, diagnostics },
      names: [displayName(machine)],
      text: (format) => format.table(['PHASE', 'SECONDS'], rows),
    },
  );
  if (output === 'table') {
    for (const line of diagnostics?.lines ?? []) host.context.err(`${line}\n`);
  }
  if (!isPassed) throw failedMachinesError([machine], 1);
}

/** Seconds in each phase that the machine went through, in order; `total` until it was gone. */
function measurePhases(machine: Machine): Readonly<Record<string, number>> {
  const { phaseTimes, requestedAt, phaseSince } = machine;
  const times = PHASES.flatMap((phase): readonly (readonly [Phase, number])[] => {
    const at = phase === 'requested' ? requestedAt : phaseTimes?.[phase];
    return at === undefined ? [] : [[phase, at]];
  }).toSorted(([, a], [, b]) => a - b);
  const spent = times.slice(0, -1).map(([phase, at], index) => {
    const [, next = at] = times[index + 1] ?? [];
    return [phase, (next - at) / 1_000] as const;
  });
  return { ...Object.fromEntries(spent), total: (phaseSince - requestedAt) / 1_000 };
}
