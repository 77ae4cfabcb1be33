// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import { stateFolderProblem } from '../model/state-path.ts';
import type { Store } from '../ports/store.ts';
import { readConfigFor, reportConfigErrors } from './config-options.ts';
import type { CommandHost } from './context.ts';

export interface StoreOptions {
  readonly config?: string;
  readonly state?: string;
}

export function withStoreOptions(command: Command): Command {
  return command
    .option('-c, --config <file>', 'config file with the path of the state database')
    .option('--state <file>', 'path of the state database; no config is read');
}

/** Opens the database of `--state` or of the config, and closes it afterwards. */
export async function withStore(
  host: CommandHost,
  options: StoreOptions,
  use: (store: Store, path: string) => Promise<void>,
): Promise<void> {
  const path = options.state ?? (await pathFromConfig(host, options));
  if (path === undefined) return;
  const { store, warnings } = await host.context.adapters.openStore(path);
  try {
    const folderProblem = stateFolderProblem(path, host.context.tempFolders);
    for (const warning of [...warnings, ...(folderProblem === undefined ? [] : [folderProblem])]) {
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
  await reportConfigErrors(host, result.problems);
  return undefined;
}
