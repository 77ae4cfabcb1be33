// SPDX-License-Identifier: Apache-2.0
// The RBAC rights that pvescaler needs, and why. `npm run gen` writes the manifests in deploy/ from this table. A test on a
// real API server checks that the adapter needs every right here and no other.
import { RECONCILE_LEASE } from '../model/lease.ts';
import { leaseObjectName } from './cluster-leases.ts';
import { GROUP, type ObjectKind, RECORD_KINDS } from './store/kinds.ts';
import { IDENTITY_CONFIG_MAP } from './store/stored-identity.ts';

/** Names used in the manifests. */
export const SERVICE_ACCOUNT = { namespace: 'pvescaler', name: 'pvescaler' } as const;

export interface Right {
  /** Empty: the core group. */
  readonly group: string;
  readonly resource: string;
  readonly verbs: readonly string[];
  /** Limits the right to these objects; absent: all. */
  readonly names?: readonly string[];
  /** Limits the right to this namespace; absent: the whole cluster. */
  readonly namespace?: string;
  /** Granted with the admission policy, which needs Kubernetes 1.30; without it the right would cover other objects. */
  readonly needsPolicy?: true;
  /** Granted only for records in the cluster (`state.kubernetes`). */
  readonly isForState?: true;
  readonly why: string;
}

const WATCHING = ['list', 'watch'] as const;
const STORAGE_RESOURCES = [
  'storageclasses',
  'csinodes',
  'csidrivers',
  'csistoragecapacities',
] as const;

const POOL_OBJECT_RIGHTS: readonly Right[] = [
  {
    group: 'pvescaler.dev',
    resource: 'proxmoxpools',
    verbs: WATCHING,
    namespace: SERVICE_ACCOUNT.namespace,
    why: 'to read pools that are defined by objects (cluster.poolObjects)',
  },
  {
    group: 'pvescaler.dev',
    resource: 'proxmoxpools',
    verbs: ['patch'],
    namespace: SERVICE_ACCOUNT.namespace,
    why: 'to keep a deleted ProxmoxPool, by a finalizer, until its machines are gone (cluster.poolObjects)',
  },
  {
    group: 'pvescaler.dev',
    resource: 'proxmoxpools/status',
    verbs: ['patch'],
    namespace: SERVICE_ACCOUNT.namespace,
    why: 'to report conditions and machines of a ProxmoxPool (cluster.poolObjects)',
  },
];

export const RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'namespaces',
    verbs: ['get'],
    names: ['kube-system'],
    why: 'to read the UID that identifies the cluster',
  },
  {
    group: '',
    resource: 'nodes',
    verbs: ['get', 'list', 'watch'],
    why: 'to see which machines have joined and which nodes are ready',
  },
  {
    group: '',
    resource: 'nodes',
    verbs: ['patch'],
    why: 'to set a missing provider id, labels that a kubelet may not set, taints and cordoning',
  },
  {
    group: '',
    resource: 'nodes',
    verbs: ['delete'],
    why: 'to delete the Node of a deleted machine',
  },
  {
    group: '',
    resource: 'pods',
    verbs: ['get', 'list', 'watch'],
    why: 'to know which pods run on which node and which are pending',
  },
  {
    group: '',
    resource: 'namespaces',
    verbs: WATCHING,
    why: 'to match pods by the labels of their namespaces, as the scheduler does (mode standalone)',
  },
  {
    group: 'apps',
    resource: 'daemonsets',
    verbs: WATCHING,
    why: 'to know which DaemonSet pods a new node will run (mode standalone)',
  },
  {
    group: 'policy',
    resource: 'poddisruptionbudgets',
    verbs: WATCHING,
    why: 'to choose nodes whose pods may be evicted (mode standalone)',
  },
  {
    group: '',
    resource: 'persistentvolumes',
    verbs: WATCHING,
    why: 'to know on which nodes a pod with volumes can run (mode standalone)',
  },
  {
    group: '',
    resource: 'persistentvolumeclaims',
    verbs: WATCHING,
    why: 'to know which volumes a pod uses (mode standalone)',
  },
  {
    group: 'storage.k8s.io',
    resource: 'volumeattachments',
    verbs: ['watch'],
    why: 'to count the volumes that are attached to a node (mode standalone)',
  },
  ...STORAGE_RESOURCES.map((resource) => ({
    group: 'storage.k8s.io',
    resource,
    verbs: WATCHING,
    why: 'to simulate volume binding and attach limits, as the scheduler does (mode standalone)',
  })),
  {
    group: '',
    resource: 'pods/eviction',
    verbs: ['create'],
    why: 'to drain a node through the Eviction API, which respects PodDisruptionBudgets',
  },
  {
    group: 'storage.k8s.io',
    resource: 'volumeattachments',
    verbs: ['list'],
    why: 'to wait until the volumes of a drained node are detached',
  },
  {
    group: '',
    resource: 'persistentvolumeclaims',
    verbs: ['get'],
    why: 'to know which volumes of a drained node belong to DaemonSet pods, which stay',
  },
  {
    group: 'events.k8s.io',
    resource: 'events',
    verbs: ['create', 'patch'],
    why: 'to write Events about Nodes and Pods, and to count repeated ones',
  },
  {
    group: '',
    resource: 'secrets',
    verbs: ['create'],
    namespace: 'kube-system',
    why: 'to create bootstrap tokens; the admission policy refuses every other Secret',
  },
  {
    group: '',
    resource: 'secrets',
    verbs: ['delete'],
    namespace: 'kube-system',
    needsPolicy: true,
    why: 'to delete the bootstrap token of a machine that is ready or gone; the admission policy refuses every other Secret. Below Kubernetes 1.30 the right is not granted, and tokens expire',
  },
  {
    group: '',
    resource: 'configmaps',
    verbs: ['get'],
    names: ['kube-root-ca.crt'],
    namespace: 'kube-system',
    why: 'to read the CA that joining nodes trust, for each join token',
  },
  ...POOL_OBJECT_RIGHTS,
  {
    group: 'coordination.k8s.io',
    resource: 'leases',
    verbs: ['create'],
    namespace: SERVICE_ACCOUNT.namespace,
    why: 'to create the leader election Lease once',
  },
  {
    group: 'coordination.k8s.io',
    resource: 'leases',
    verbs: ['get', 'update'],
    names: [leaseObjectName(RECONCILE_LEASE)],
    namespace: SERVICE_ACCOUNT.namespace,
    why: 'to acquire, renew and release the leader election Lease',
  },
  ...RECORD_KINDS.flatMap(rightsOfRecords),
  {
    group: '',
    resource: 'configmaps',
    verbs: ['create'],
    namespace: SERVICE_ACCOUNT.namespace,
    isForState: true,
    why: 'to create the ConfigMap with the id of the installation once (`state.kubernetes`)',
  },
  {
    group: '',
    resource: 'configmaps',
    verbs: ['get', 'update'],
    names: [IDENTITY_CONFIG_MAP],
    namespace: SERVICE_ACCOUNT.namespace,
    isForState: true,
    why: 'to read and complete the id of the installation (`state.kubernetes`)',
  },
];

function rightsOfRecords({ kind, plural, hasStatusSubresource }: ObjectKind): readonly Right[] {
  const common = {
    group: GROUP,
    namespace: SERVICE_ACCOUNT.namespace,
    isForState: true,
  } as const;
  const verbs = ['get', 'list', 'watch', 'create', 'delete'];
  const why = `to keep ${kind} objects (\`state.kubernetes\`)`;
  if (!hasStatusSubresource)
    return [{ ...common, resource: plural, verbs: [...verbs, 'update'], why }];
  return [
    { ...common, resource: plural, verbs, why },
    { ...common, resource: `${plural}/status`, verbs: ['update'], why },
  ];
}
