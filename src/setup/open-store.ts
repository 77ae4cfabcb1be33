// SPDX-License-Identifier: Apache-2.0
// The store that the config names: a SQLite file, or objects of the cluster beside a SQLite file for journal and leases.
import type { Config } from '../config/index.ts';
import { InvalidConfig, type PvescalerError } from '../ports/errors.ts';
import type { Store } from '../ports/store.ts';
import type { RequestFence } from '../ports/write-fence.ts';
import type { OpenedStore, SetupAdapters } from './context.ts';

/** The file is created for a driver, and where it has no records. */
export function openLocalStore(
  adapters: Pick<SetupAdapters, 'openStore' | 'openOrCreateStore'>,
  { state }: Pick<Config, 'state'>,
  mayCreate: boolean,
): Promise<OpenedStore> {
  return mayCreate || state.kubernetes !== undefined
    ? adapters.openOrCreateStore(state.path)
    : adapters.openStore(state.path);
}

interface RecordsOptions {
  readonly local: Store;
  /** Asked before each write of the driver. */
  readonly fence?: RequestFence | undefined;
  readonly onBackgroundError?: ((error: PvescalerError) => void) | undefined;
}

/** Its `close` closes `local` too. */
export async function openRecords(
  adapters: Pick<SetupAdapters, 'openKubernetesStore'>,
  { state, cluster }: Pick<Config, 'state' | 'cluster'>,
  { local, ...options }: RecordsOptions,
): Promise<Store> {
  if (state.kubernetes === undefined) return local;
  const { namespace } = state.kubernetes;
  const store = await adapters.openKubernetesStore(cluster, { namespace, local, ...options });
  if (store !== undefined) return store;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    'state.kubernetes needs access to Kubernetes, and there is none',
    { hint: 'Set cluster.kubeconfig, run pvescaler in a pod, or remove state.kubernetes.' },
  );
}

/** For messages. */
export function describeStore({ path, kubernetes }: Config['state']): string {
  return kubernetes === undefined ? path : `namespace ${kubernetes.namespace} of Kubernetes`;
}
