// SPDX-License-Identifier: Apache-2.0
// The id in every machine's ownership marker: `cluster.id`, otherwise the uid of the Kubernetes cluster, otherwise an id
// generated once. The store keeps it together with the uid of the cluster it was connected to. A file beside a database
// keeps it too, so that machines are still recognised after the database is lost.
import type { Config } from '../config/index.ts';
import { formatCount } from '../model/format-text.ts';
import type { Cluster } from '../ports/cluster.ts';
import { InvalidConfig } from '../ports/errors.ts';
import type { Store, StoreIdentity } from '../ports/store.ts';
import type { SetupContext } from './context.ts';
import { describeStore } from './open-store.ts';

/** Second line of the file when the id is a cluster's uid. */
const KUBERNETES_SOURCE = 'kubernetes';

interface KnownIds {
  /** What has the records, and the key of the config for another one. */
  readonly state: { readonly name: string; readonly key: string };
  /** Of the file beside a database. */
  readonly path: string | undefined;
  /** Undefined when there is no file. */
  readonly file: StoreIdentity | undefined;
  readonly stored: StoreIdentity;
  readonly configured: string | undefined;
  /** Of the connected cluster; undefined without access to Kubernetes. */
  readonly uid: string | undefined;
}

interface IdentitySources {
  readonly store: Store;
  /** Undefined without access to Kubernetes, and for a process that does not drive. */
  readonly cluster: Cluster | undefined;
  readonly isDriving: boolean;
}

function stateOf({ state }: Config): KnownIds['state'] {
  return state.kubernetes === undefined
    ? { name: 'the state database', key: 'state.path' }
    : { name: `the state in ${describeStore(state)}`, key: 'state.kubernetes.namespace' };
}

/** Throws InvalidConfig when database, file, config and cluster do not belong together. */
export async function resolveClusterId(
  context: Pick<SetupContext, 'files' | 'random'>,
  config: Config,
  { store, cluster, isDriving }: IdentitySources,
): Promise<string> {
  const { files, random } = context;
  const known = await readKnownIds(files, config, { store, cluster, isDriving });
  requireSameIds(known);
  const candidate = knownId(known) ?? random.uuid();
  // Without the uid of the cluster no id may be stored there.
  if (known.path === undefined && !isDriving) return candidate;
  if (isUnclear(known)) await requireNoMachines(store, known);
  const stored = await storeIds(store, candidate, known.uid);
  // Another process may have been first.
  requireSameIds({ ...known, stored });
  if (known.file === undefined && known.path !== undefined)
    await files.write(known.path, formatFile(stored.id, stored.clusterUid), { overwrite: false });
  return stored.id;
}

function knownId({ stored, file, configured, uid }: KnownIds): string | undefined {
  return stored.id ?? file?.id ?? configured ?? uid;
}

async function storeIds(store: Store, id: string, uid: string | undefined) {
  return { id, ...(await store.identity({ id, ...(uid !== undefined && { clusterUid: uid }) })) };
}

async function readKnownIds(
  files: SetupContext['files'],
  config: Config,
  { store, cluster }: IdentitySources,
): Promise<KnownIds> {
  const { path: database, kubernetes } = config.state;
  const path = kubernetes === undefined ? `${database}.cluster-id` : undefined;
  return {
    state: stateOf(config),
    path,
    file: path === undefined ? undefined : parseFile(await files.read(path)),
    stored: await store.identity(),
    configured: config.cluster.id,
    uid: await cluster?.uid(),
  };
}

function parseFile(text: string | undefined): StoreIdentity | undefined {
  const [id = '', source = ''] = (text ?? '').split('\n');
  if (id === '') return undefined;
  return { id, ...(source === KUBERNETES_SOURCE && { clusterUid: id }) };
}

function formatFile(id: string, uid: string | undefined): string {
  return id === uid ? `${id}\n${KUBERNETES_SOURCE}\n` : `${id}\n`;
}

function requireSameIds(known: KnownIds): void {
  requireOwnFile(known);
  requireOwnId(known);
  requireOwnCluster(known);
}

function requireOwnFile({ path, file, stored }: KnownIds): void {
  if (file === undefined || stored.id === undefined || file.id === stored.id) return;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `the state database has the cluster id ${stored.id}, but ${path} has ${file.id}: they do not belong together`,
    {
      hint: 'Restore the database of this installation, or remove the file if it is the wrong one.',
    },
  );
}

function requireOwnId({ state, file, stored, configured }: KnownIds): void {
  const id = stored.id ?? file?.id;
  if (configured === undefined || id === undefined || configured === id) return;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `cluster.id is ${configured}, but ${state.name} belongs to the cluster id ${id}, which its machines carry`,
    { hint: `Set cluster.id to ${id}, or set another ${state.key} for ${configured}.` },
  );
}

/** In another cluster no machine has a Node, so every machine would seem lost. */
function requireOwnCluster({ state, file, stored, uid }: KnownIds): void {
  const clusterUid = stored.clusterUid ?? file?.clusterUid;
  if (uid === undefined || clusterUid === undefined || uid === clusterUid) return;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `${state.name} belongs to the Kubernetes cluster with uid ${clusterUid}, but the connected cluster has uid ${uid}`,
    {
      hint: `Set the kubeconfig of the first cluster, or another ${state.key} for this one. If this cluster replaces the first one, also set cluster.id to ${stored.id ?? file?.id}: then the existing machines are adopted.`,
    },
  );
}

/** A database of an earlier version whose file is lost: its id may be generated, or the uid of another cluster. */
function isUnclear({ file, stored, configured, uid }: KnownIds): boolean {
  if (file !== undefined || configured !== undefined) return false;
  return stored.id === undefined || (stored.clusterUid === undefined && stored.id !== uid);
}

async function requireNoMachines(
  store: Store,
  { state, path, stored, uid }: KnownIds,
): Promise<void> {
  if (stored.id !== undefined && uid === undefined) return;
  const { length } = await store.machines.list();
  if (length === 0) return;
  const what =
    stored.id === undefined
      ? `has no cluster id${path === undefined ? '' : `, and ${path} is missing`}`
      : `has the cluster id ${stored.id}, the connected Kubernetes cluster has uid ${uid}${path === undefined ? '' : `, and ${path}, which tells whether they belong together, is missing`}`;
  const id = stored.id ?? `the value of 'cluster=' in the description of their VMs`;
  throw new InvalidConfig(
    'CONFIG_INVALID',
    `${state.name} has records of ${formatCount(length, 'machine')} and ${what}`,
    {
      hint: `If these machines belong to the connected cluster, set cluster.id to ${id}; otherwise set its kubeconfig, or another ${state.key}.`,
    },
  );
}
