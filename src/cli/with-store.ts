// SPDX-License-Identifier: Apache-2.0
import type { Command } from 'commander';
import type { Config } from '../config/index.ts';
import { stateFolderProblem } from '../model/state-path.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Store } from '../ports/store.ts';
import { readConfigFor, reportConfigErrors } from './config-options.ts';
import type { CommandHost } from './context.ts';

export interface StoreOptions {
  readonly config?: string;
  readonly state?: string;
}

export interface OpenState {
  readonly store: Store;
  /** The database's path, or the namespace of the objects. */
  readonly location: string;
  /** With the Lease of the driver, if one on another machine may use these records or those that they replace. */
  readonly openCluster: () => Promise<Cluster | undefined>;
}

export function withStoreOptions(command: Command): Command {
  return command
    .option('-c, --config <file>', 'config file that names the state')
    .option('--state <file>', 'path of the state database; no config is read');
}

/**
 * Opens the database of `--state`, or the state of the config, and closes it afterwards. `mayCreate`: for an import, before
 * which the cluster may be driven with other records.
 */
export async function withStore(
  host: CommandHost,
  { mayCreate = false, ...options }: StoreOptions & { readonly mayCreate?: boolean },
  use: (open: OpenState) => Promise<void>,
): Promise<void> {
  const config = await readStateConfig(host, options);
  if (config === undefined) return;
  const { adapters } = host.context;
  const { describeStore, openLocalStore, openRecords } = await import('../setup/index.ts');
  const { path, kubernetes } = config.state;
  const local = await openLocalStore(adapters, config, mayCreate);
  const closeSteps = [() => local.store.close()];
  try {
    for (const warning of local.warnings) host.context.err(`warning: ${warning}\n`);
    const problem =
      kubernetes === undefined ? stateFolderProblem(path, host.context.tempFolders) : undefined;
    if (problem !== undefined) host.context.err(`warning: ${problem}\n`);
    const store = await openRecords(adapters, config, { local: local.store });
    if (store !== local.store) closeSteps.push(() => store.close());
    await use({
      store,
      location: describeStore(config.state),
      openCluster: async () => {
        const isConnected = kubernetes !== undefined || (mayCreate && config.isConnected);
        const cluster = isConnected ? await connect(host, config.cluster) : undefined;
        if (cluster !== undefined) closeSteps.push(() => cluster.close());
        return cluster;
      },
    });
  } finally {
    for (const close of closeSteps.toReversed()) await close();
  }
}

interface StateConfig extends Pick<Config, 'state' | 'cluster'> {
  /** Whether a driver with this config uses the Lease of the cluster. */
  readonly isConnected: boolean;
}

/** Undefined when the config is invalid, which is then reported. */
async function readStateConfig(
  host: CommandHost,
  { config, state }: StoreOptions,
): Promise<StateConfig | undefined> {
  if (state !== undefined)
    return { state: { path: state, kubernetes: undefined }, cluster: NONE, isConnected: false };
  const result = await readConfigFor(host.context, config === undefined ? {} : { config });
  if (result.ok) {
    const { shouldConnectKubernetes } = await import('../setup/index.ts');
    const isConnected = shouldConnectKubernetes(result.config, host.context.environment);
    return { ...result.config, isConnected };
  }
  await reportConfigErrors(host, result.problems);
  return undefined;
}

/** A database needs no cluster. */
const NONE: Config['cluster'] = {
  name: '',
  id: undefined,
  kubeconfigPath: undefined,
  context: undefined,
  cloudController: false,
  poolObjects: false,
  namespace: '',
};

async function connect(
  { context }: CommandHost,
  cluster: Config['cluster'],
): Promise<Cluster | undefined> {
  const fence = { mayAct: () => true, beginRequest: () => () => undefined };
  const connected = await context.adapters.connectKubernetes(cluster, {
    cluster,
    fence,
    watch: 'nodes',
  });
  return connected?.cluster;
}
