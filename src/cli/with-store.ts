// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { stateFolderProblem } from '../model/state-path.ts';
import type { Store } from '../ports/store.ts';
import { readConfigFor } from './config-options.ts';
import type { CommandHost } from './context.ts';
import { tellFaults } from './tell-problems.ts';

export interface StoreOptions {
  readonly config?: string;
  readonly state?: string;
}

export function withStoreOptions(command: Command): Command {
  return command
    .option('-c, --config <file>', 'the config file that names the database')
    .option('--state <file>', 'the database itself; no config is needed then');
}

/** Opens the database that `--state` or the config names, and closes it whatever happens. */
export async function withStore(
  host: CommandHost,
  options: StoreOptions,
  use: (store: Store, path: string) => Promise<void>,
): Promise<void> {
  const path = options.state ?? (await pathFromConfig(host, options));
  if (path === undefined) return;
  const { store, warnings } = await host.context.adapters.openStore(path);
  try {
    const place = stateFolderProblem(path, host.context.tempFolders);
    for (const warning of [...warnings, ...(place === undefined ? [] : [place])]) {
      host.context.err(`warning: ${warning}\n`);
    }
    await use(store, path);
  } finally {
    await store.close();
  }
}

async function pathFromConfig(
  host: CommandHost,
  { config }: StoreOptions,
): Promise<string | undefined> {
  const result = await readConfigFor(host.context, config === undefined ? {} : { config });
  if (result.ok) return result.config.state.path;
  await tellFaults(host, result.problems);
  return undefined;
}
