// SPDX-License-Identifier: Apache-2.0
import { formatCount } from '../model/format-text.ts';
import type { Machine, MachineId } from '../model/machine.ts';
import { isTemplateGroup } from '../model/role.ts';
import { InvalidRequest, NotOwned } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import type { ConfigOptions } from './config-options.ts';
import type { CommandHost } from './context.ts';
import type { DrainOptions } from './drain-options.ts';
import { parseDrainOptions, requireNoneUndone, undoneDrains } from './drain-results.ts';
import { findMachine } from './find-machine.ts';
import { displayName, formatGone } from './format-machines.ts';
import type { OutputOptions } from './output-option.ts';
import { printObjects } from './print-objects.ts';
import { isRequestOpen, runUntilDone } from './run-until-done.ts';
import { parseTimeoutMs, type TimeoutOptions } from './timeout-option.ts';

export interface DeleteOptions extends ConfigOptions, TimeoutOptions, DrainOptions, OutputOptions {
  readonly reason: string;
}

interface DeleteRequest {
  readonly texts: readonly string[];
  readonly options: DeleteOptions;
}

export async function deleteNamed(
  host: CommandHost,
  open: OpenFleet,
  { texts, options }: DeleteRequest,
): Promise<void> {
  const ids = await deleteMachines(host, open, {
    regions: await regionsOf(open, texts),
    select: () => Promise.all(texts.map((text) => findDeletable(open, text))),
    options,
  });
  await reportReplacements(host, open, ids);
  await requireNoVmLeftBehind(open, ids);
}

/** A template whose linked clones exist could neither be deleted nor kept. */
async function findDeletable(open: OpenFleet, text: string): Promise<Machine> {
  const machine = await findMachine(open, text);
  if (!isTemplateGroup(machine.pool)) return machine;
  throw new InvalidRequest('USAGE', `${text} is a template`, {
    hint: 'Delete it with pvescaler template delete, which checks for linked clones.',
  });
}

interface Deletion {
  readonly regions: readonly string[];
  /** Called once the regions were read. */
  readonly select: () => Promise<readonly Machine[]>;
  readonly options: DeleteOptions;
}

/** Resolves when the machines are gone, and prints them. Throws when the drain of one of them was undone. */
export async function deleteMachines(
  host: CommandHost,
  open: OpenFleet,
  deletion: Deletion,
): Promise<ReadonlySet<MachineId>> {
  const { ids, gone, undone } = await removeMachines(host, open, deletion);
  await printObjects(host, deletion.options, {
    value: gone,
    names: gone.map(displayName),
    text: () => `${formatGone(ids.size - undone.length)}\n`,
  });
  requireNoneUndone(undone);
  return ids;
}

/** Resolves when the machines are gone, except those whose drain was undone. */
export async function removeMachines(
  host: CommandHost,
  open: OpenFleet,
  { regions, select, options }: Deletion,
) {
  const drain = parseDrainOptions(options);
  const why = { by: 'cli', reason: options.reason };
  const ids = new Set<MachineId>();
  const intents = new Set<string>();
  const isLeft = ({ id, phase }: Machine) => ids.has(id) && !hasEnded(phase);
  const readUndone = async () => undoneDrains(await open.fleet.status(), intents);
  await runUntilDone(host, open, {
    regions,
    timeoutMs: parseTimeoutMs(options),
    isUnfinished: isLeft,
    submit: async () => {
      for (const { id } of await select()) ids.add(id);
      const { intent } =
        drain === undefined
          ? await open.fleet.remove([...ids], why)
          : await open.fleet.drain({ ...why, ...drain, machines: [...ids].map((id) => ({ id })) });
      if (intent !== undefined) intents.add(intent);
    },
    isDone: async () => {
      const { machines } = await open.fleet.status();
      const undone = new Set((await readUndone()).map(({ machine }) => machine));
      const left = machines.filter((machine) => isLeft(machine) && !undone.has(machine.id));
      return left.length === 0 && !isRequestOpen(open.fleet, ids);
    },
  });
  const undone = await readUndone();
  const kept = new Set(undone.map(({ machine }) => machine));
  const { machines } = await open.fleet.status();
  const gone = machines.filter(({ id }) => ids.has(id) && !kept.has(id));
  return { ids, gone, undone };
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
  for (const {
    name,
    limits: { min },
    ready,
  } of pools) {
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
