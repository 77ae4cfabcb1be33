// SPDX-License-Identifier: Apache-2.0
// Names of pools, machines, VMs and templates for completion, from the config and the state database. A shell waits for
// them: nothing is asked over the network, and whatever cannot be read has no names.
import type { Config } from '../config/index.ts';
import type { Machine } from '../model/machine.ts';
import { isTemplateGroup, roleOf } from '../model/role.ts';
import { readConfigFor } from './config-options.ts';
import type { CliContext } from './context.ts';

/** Kinds as the arguments name them, one or several of it; one that is not known has no names. */
export async function namesOf(
  context: CliContext,
  kind: string,
  words: readonly string[],
): Promise<readonly string[]> {
  try {
    return await readNames(context, kind.replace(/s$/, ''), words);
  } catch {
    return [];
  }
}

const handMade = ({ pool }: Machine) => roleOf(pool) !== undefined && !isTemplateGroup(pool);
const nameOf = ({ placement }: Machine) => placement?.name ?? [];

const FROM_CONFIG: Readonly<Record<string, (config: Config) => readonly string[]>> = {
  pool: ({ pools }) => pools.map(({ name }) => name),
  template: ({ templates }) => Object.keys(templates),
  region: ({ regions }) => Object.keys(regions),
};

const FROM_MACHINES: Readonly<Record<string, (machines: readonly Machine[]) => readonly string[]>> =
  {
    machine: (machines) => machines.flatMap(nameOf),
    node: (machines) => machines.flatMap(({ nodeName }) => nodeName ?? []),
    vm: (machines) => machines.filter(handMade).flatMap(nameOf),
  };

async function readNames(
  context: CliContext,
  kind: string,
  words: readonly string[],
): Promise<readonly string[]> {
  const fromConfig = FROM_CONFIG[kind];
  if (fromConfig !== undefined) {
    const config = await readConfig(context, words);
    return config === undefined ? [] : fromConfig(config);
  }
  return FROM_MACHINES[kind]?.(await readMachines(context, words)) ?? [];
}

async function readConfig(
  context: CliContext,
  words: readonly string[],
): Promise<Config | undefined> {
  const config = valueAfter(words, '-c', '--config');
  const result = await readConfigFor(context, config === undefined ? {} : { config });
  return result.ok ? result.config : undefined;
}

async function readMachines(
  context: CliContext,
  words: readonly string[],
): Promise<readonly Machine[]> {
  const path = valueAfter(words, '--state') ?? (await readConfig(context, words))?.state.path;
  if (path === undefined) return [];
  const machines = await context.adapters.readMachineRecords(path);
  return machines.filter(({ phase }) => phase !== 'gone' && phase !== 'failed');
}

function valueAfter(words: readonly string[], ...flags: readonly string[]): string | undefined {
  return words[words.findLastIndex((word) => flags.includes(word)) + 1 || words.length];
}
