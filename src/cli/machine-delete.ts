// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { formatCount } from '../model/format-text.ts';
import type { MachineId } from '../model/machine.ts';
import { NotOwned } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import { type ConfigOptions, withConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { findMachine } from './find-machine.ts';
import { formatGone } from './format-machines.ts';
import { runUntilDone } from './run-until-done.ts';
import { parseTimeoutMs, type TimeoutOptions, withTimeoutOption } from './timeout-option.ts';
import { withFleet } from './with-fleet.ts';

interface DeleteOptions extends ConfigOptions, TimeoutOptions {
  readonly reason: string;
}

export function addMachineDelete(parent: Command, host: CommandHost): void {
  const command = withTimeoutOption(
    parent
      .command('delete')
      .description(
        'delete machines with their VMs, seeds, addresses and Nodes, and wait until they are gone',
      )
      .argument('<machines...>', 'names, ids, or first characters of ids')
      .option('--reason <text>', 'reason for the journal', 'requested on the command line'),
  );
  withConfigOptions(command).action((texts: readonly string[], options: DeleteOptions) =>
    withFleet(host, options, {
      access: 'drive',
      use: (open) => deleteMachines(host, open, { texts, options }),
    }),
  );
}

interface DeleteRequest {
  readonly texts: readonly string[];
  readonly options: DeleteOptions;
}

async function deleteMachines(
  host: CommandHost,
  open: OpenFleet,
  request: DeleteRequest,
): Promise<void> {
  const { texts, options } = request;
  const ids = new Set<MachineId>();
  await runUntilDone(host, open, {
    regions: await regionsOf(open, texts),
    timeoutMs: parseTimeoutMs(options),
    isUnfinished: ({ id, phase }) => ids.has(id) && !hasEnded(phase),
    submit: async () => {
      for (const text of texts) ids.add((await findMachine(open, text)).id);
      await open.fleet.remove([...ids], { by: 'cli', reason: options.reason });
    },
    isDone: async () => {
      const { machines, openIntents } = await open.fleet.status();
      const left = machines.filter(({ id, phase }) => ids.has(id) && !hasEnded(phase));
      return openIntents === 0 && left.length === 0;
    },
  });
  host.context.out(`${formatGone(ids.size)}\n`);
  await reportReplacements(host, open, ids);
  await requireNoVmLeftBehind(open, ids);
}

/** The machines are gone, but VMs of theirs exist: nothing proves that pvescaler may delete them. */
export async function requireNoVmLeftBehind(
  { store }: OpenFleet,
  machines: Iterable<string>,
): Promise<void> {
  const left: string[] = [];
  for (const machine of machines) {
    const entries = await store.journal.read({ machine });
    const adoptedAt = entries.findLastIndex(({ reason }) => reason === 'MachineAdopted');
    const since = entries.slice(adoptedAt + 1);
    const entry = since.find(({ reason }) => reason === 'VmLeftBehind');
    if (entry !== undefined) left.push(entry.message);
  }
  if (left.length === 0) return;
  throw new NotOwned('VM_NOT_OWNED', left.join('; '), {
    hint: 'Run pvescaler orphans to list them.',
  });
}

/** The driver keeps the minimum; this command does not wait for the new machines. */
async function reportReplacements(
  host: CommandHost,
  open: OpenFleet,
  ids: ReadonlySet<MachineId>,
): Promise<void> {
  const { machines, pools } = await open.fleet.status();
  const affected = new Set(machines.filter(({ id }) => ids.has(id)).map(({ pool }) => pool));
  for (const { name, min, ready } of pools) {
    if (!affected.has(name) || ready >= min) continue;
    host.context.err(
      `pool ${name} keeps a minimum of ${min}: ${formatCount(min - ready, 'machine')} will be replaced by pvescaler serve or the next command; to wait for that, run pvescaler pool scale ${name} --to ${min}\n`,
    );
  }
}

/** Another region need not be readable. A machine without a record may be in any region. */
async function regionsOf(open: OpenFleet, texts: readonly string[]): Promise<readonly string[]> {
  const all = Object.keys(open.config.regions);
  const regions = new Set<string>();
  for (const text of texts) {
    const machine = await findMachine(open, text).catch(() => undefined);
    if (machine === undefined) return all;
    if (machine.placement !== undefined) regions.add(machine.placement.region);
  }
  return all.filter((region) => regions.has(region));
}

function hasEnded(phase: string): boolean {
  return phase === 'gone' || phase === 'failed';
}
