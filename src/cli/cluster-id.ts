// SPDX-License-Identifier: Apache-2.0
// Whose the machines are: the uid of the Kubernetes cluster, or an id generated once. It is kept beside the database
// too: who loses the database must still recognise what is theirs.
import type { Config } from '../config/index.ts';
import type { Cluster } from '../ports/cluster.ts';
import { InvalidConfig } from '../ports/errors.ts';
import type { Store } from '../ports/store.ts';
import type { CliContext } from './context.ts';

/** Second line of the file where the id is a cluster's. */
const OF_KUBERNETES = 'kubernetes';

export async function clusterId(
  { files, random }: CliContext,
  config: Config,
  { store, cluster }: { readonly store: Store; readonly cluster: Cluster | undefined },
): Promise<string> {
  const path = `${config.state.path}.cluster-id`;
  const [kept = '', source = ''] = ((await files.read(path)) ?? '').split('\n');
  const uid = await cluster?.uid();
  if (source === OF_KUBERNETES && uid !== undefined) requireSame(path, kept, uid);
  const id = await store.installationId(kept === '' ? (uid ?? random.uuid()) : kept);
  if (kept === '') await files.write(path, fileText(id, uid), { overwrite: false });
  return id;
}

function fileText(id: string, uid: string | undefined): string {
  return id === uid ? `${id}\n${OF_KUBERNETES}\n` : `${id}\n`;
}

/** Seen from the wrong cluster, every machine would look as if its Node were gone. */
function requireSame(path: string, kept: string, uid: string): void {
  if (uid === kept) return;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `the state belongs to the Kubernetes cluster with uid ${kept}, and this one has ${uid}`,
    {
      hint: `Name the right kubeconfig, or another state.path for this cluster (the id is kept in ${path}).`,
    },
  );
}
