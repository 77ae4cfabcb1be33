// SPDX-License-Identifier: Apache-2.0
// The id in every machine's ownership marker: the uid of the Kubernetes cluster, or an id generated once. A file beside
// the database keeps it too, so that machines are still recognised after the database is lost.
import type { Config } from '../config/index.ts';
import type { Cluster } from '../ports/cluster.ts';
import { InvalidConfig } from '../ports/errors.ts';
import type { Store } from '../ports/store.ts';
import type { SetupContext } from './context.ts';

/** Second line of the file when the id is a cluster's uid. */
const KUBERNETES_SOURCE = 'kubernetes';

export async function resolveClusterId(
  { files, random }: SetupContext,
  config: Config,
  { store, cluster }: { readonly store: Store; readonly cluster: Cluster | undefined },
): Promise<string> {
  const path = `${config.state.path}.cluster-id`;
  const [kept = '', source = ''] = ((await files.read(path)) ?? '').split('\n');
  const uid = await cluster?.uid();
  if (source === KUBERNETES_SOURCE && uid !== undefined) requireSameCluster(path, kept, uid);
  const id = await store.installationId(kept === '' ? (uid ?? random.uuid()) : kept);
  if (kept === '') await files.write(path, formatFile(id, uid), { overwrite: false });
  return id;
}

function formatFile(id: string, uid: string | undefined): string {
  return id === uid ? `${id}\n${KUBERNETES_SOURCE}\n` : `${id}\n`;
}

/** In another cluster no machine has a Node, so every machine would seem lost. */
function requireSameCluster(path: string, kept: string, uid: string): void {
  if (uid === kept) return;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `the state database belongs to the Kubernetes cluster with uid ${kept}, but the connected cluster has uid ${uid}`,
    {
      hint: `Set the kubeconfig of the first cluster, or another state.path for this one. The uid is stored in ${path}.`,
    },
  );
}
