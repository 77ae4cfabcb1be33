// SPDX-License-Identifier: Apache-2.0
// What the account in use must be allowed to do, verb by verb, and why. The manifests in deploy/ are made from this
// table, and a test on a real API server holds the adapter to it: it can do all of this, and nothing else.
import { RECONCILE_LEASE } from '../model/lease.ts';
import { objectName } from './leases.ts';

/** Also the names in the manifests. */
export const ACCOUNT = { namespace: 'pvescaler', name: 'pvescaler' } as const;

export interface Right {
  /** Empty: the core group. */
  readonly group: string;
  readonly resource: string;
  readonly verbs: readonly string[];
  /** Only these objects; absent: all. */
  readonly names?: readonly string[];
  /** Only in this namespace; absent: in the whole cluster. */
  readonly namespace?: string;
  readonly why: string;
}

export const RIGHTS: readonly Right[] = [
  {
    group: '',
    resource: 'namespaces',
    verbs: ['get'],
    names: ['kube-system'],
    why: 'its UID says which cluster this is',
  },
  {
    group: '',
    resource: 'nodes',
    verbs: ['get', 'list', 'watch'],
    why: 'to see machines join, and whether they are ready',
  },
  {
    group: '',
    resource: 'nodes',
    verbs: ['patch'],
    why: 'to apply the provider id where there is none and labels a kubelet may not set; for taints and cordoning',
  },
  {
    group: '',
    resource: 'nodes',
    verbs: ['delete'],
    why: 'the Node of a machine that is gone',
  },
  {
    group: '',
    resource: 'pods',
    verbs: ['get', 'list', 'watch'],
    why: 'what runs where, and what waits for a place',
  },
  {
    group: '',
    resource: 'pods/eviction',
    verbs: ['create'],
    why: 'to empty a node in the way that budgets can refuse',
  },
  {
    group: 'events.k8s.io',
    resource: 'events',
    verbs: ['create', 'patch'],
    why: 'to tell on Nodes and Pods what was done, and count what repeats',
  },
  {
    group: '',
    resource: 'secrets',
    verbs: ['create'],
    namespace: 'kube-system',
    why: 'bootstrap tokens; the admission policy refuses every other Secret',
  },
  {
    group: '',
    resource: 'configmaps',
    verbs: ['get'],
    names: ['kube-root-ca.crt'],
    namespace: 'kube-system',
    why: 'the CA that joining nodes trust, where the connection names none',
  },
  {
    group: 'coordination.k8s.io',
    resource: 'leases',
    verbs: ['create'],
    namespace: ACCOUNT.namespace,
    why: 'the Lease of the leader, the first time',
  },
  {
    group: 'coordination.k8s.io',
    resource: 'leases',
    verbs: ['get', 'update'],
    names: [objectName(RECONCILE_LEASE)],
    namespace: ACCOUNT.namespace,
    why: 'to take, renew and release it',
  },
];
