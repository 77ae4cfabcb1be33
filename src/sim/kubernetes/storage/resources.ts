// SPDX-License-Identifier: Apache-2.0
// The resources of the API, as its discovery documents describe them.
import type { Json } from './objects.ts';
import type { StructuralSchema } from './structural-schema.ts';

export interface Resource {
  /** `v1`, or `group/version`. */
  readonly apiVersion: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** The status is a subresource: only writes to `…/status` change it. */
  readonly hasStatus: boolean;
  /** `metadata.generation` counts the changes of the spec. */
  readonly hasGeneration: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  /** Subresources other than `status`. */
  readonly subresources: readonly string[];
  /** Only for a resource of a CustomResourceDefinition. */
  readonly custom?: CustomResource;
}

export interface CustomResource {
  /** Name of the CustomResourceDefinition. */
  readonly definition: string;
  readonly singular: string;
  readonly schema: StructuralSchema;
  /** The schema contains rules, known or not. */
  readonly hasRules: boolean;
  readonly columns: readonly PrinterColumn[];
  readonly scale?: ScalePaths;
  /** The definition is being deleted: no new objects. */
  readonly isTerminating: boolean;
}

export interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly description: string;
  readonly jsonPath: string;
  readonly priority: Json;
}

/** Field names from the top of the object. */
export interface ScalePaths {
  readonly spec: readonly string[];
  readonly status: readonly string[];
  readonly selector?: readonly string[];
}

export function defineResource(
  apiVersion: string,
  plural: string,
  rest: Partial<Resource>,
): Resource {
  return {
    apiVersion,
    plural,
    kind: '',
    isNamespaced: true,
    hasStatus: false,
    hasGeneration: false,
    shortNames: [],
    categories: [],
    subresources: [],
    ...rest,
  };
}

const CLUSTER_SCOPED = { isNamespaced: false } as const;
/** Part of `kubectl get all`. */
const ALL = { categories: ['all'] } as const;
const WORKLOAD = { hasStatus: true, hasGeneration: true, ...ALL } as const;
const SCALABLE = { ...WORKLOAD, subresources: ['scale'] } as const;

export const NAMESPACES = defineResource('v1', 'namespaces', {
  kind: 'Namespace',
  ...CLUSTER_SCOPED,
  hasStatus: true,
  shortNames: ['ns'],
  subresources: ['finalize'],
});
export const NODES = defineResource('v1', 'nodes', {
  kind: 'Node',
  ...CLUSTER_SCOPED,
  hasStatus: true,
  shortNames: ['no'],
});
export const PODS = defineResource('v1', 'pods', {
  kind: 'Pod',
  hasStatus: true,
  shortNames: ['po'],
  ...ALL,
  subresources: ['binding', 'eviction', 'log'],
});
export const SECRETS = defineResource('v1', 'secrets', { kind: 'Secret' });
export const CONFIG_MAPS = defineResource('v1', 'configmaps', {
  kind: 'ConfigMap',
  shortNames: ['cm'],
});
export const SERVICE_ACCOUNTS = defineResource('v1', 'serviceaccounts', {
  kind: 'ServiceAccount',
  shortNames: ['sa'],
});
export const SERVICES = defineResource('v1', 'services', {
  kind: 'Service',
  hasStatus: true,
  shortNames: ['svc'],
  ...ALL,
});
export const CLAIMS = defineResource('v1', 'persistentvolumeclaims', {
  kind: 'PersistentVolumeClaim',
  hasStatus: true,
  shortNames: ['pvc'],
});
export const VOLUMES = defineResource('v1', 'persistentvolumes', {
  kind: 'PersistentVolume',
  ...CLUSTER_SCOPED,
  hasStatus: true,
  shortNames: ['pv'],
});
/** The same objects as `EVENTS`, in the older form that kubectl reads. Stored as `EVENTS`. */
export const CORE_EVENTS = defineResource('v1', 'events', { kind: 'Event', shortNames: ['ev'] });
export const EVENTS = defineResource('events.k8s.io/v1', 'events', {
  kind: 'Event',
  shortNames: ['ev'],
});
export const DEPLOYMENTS = defineResource('apps/v1', 'deployments', {
  kind: 'Deployment',
  ...SCALABLE,
  shortNames: ['deploy'],
});
export const REPLICA_SETS = defineResource('apps/v1', 'replicasets', {
  kind: 'ReplicaSet',
  ...SCALABLE,
  shortNames: ['rs'],
});
export const STATEFUL_SETS = defineResource('apps/v1', 'statefulsets', {
  kind: 'StatefulSet',
  ...SCALABLE,
  shortNames: ['sts'],
});
export const DAEMON_SETS = defineResource('apps/v1', 'daemonsets', {
  kind: 'DaemonSet',
  ...WORKLOAD,
  shortNames: ['ds'],
});
export const CONTROLLER_REVISIONS = defineResource('apps/v1', 'controllerrevisions', {
  kind: 'ControllerRevision',
});
export const JOBS = defineResource('batch/v1', 'jobs', { kind: 'Job', ...WORKLOAD });
export const BUDGETS = defineResource('policy/v1', 'poddisruptionbudgets', {
  kind: 'PodDisruptionBudget',
  hasStatus: true,
  hasGeneration: true,
  shortNames: ['pdb'],
});
export const LEASES = defineResource('coordination.k8s.io/v1', 'leases', { kind: 'Lease' });
export const STORAGE_CLASSES = defineResource('storage.k8s.io/v1', 'storageclasses', {
  kind: 'StorageClass',
  ...CLUSTER_SCOPED,
  shortNames: ['sc'],
});
export const ATTACHMENTS = defineResource('storage.k8s.io/v1', 'volumeattachments', {
  kind: 'VolumeAttachment',
  ...CLUSTER_SCOPED,
  hasStatus: true,
});
export const PRIORITY_CLASSES = defineResource('scheduling.k8s.io/v1', 'priorityclasses', {
  kind: 'PriorityClass',
  ...CLUSTER_SCOPED,
  shortNames: ['pc'],
});
export const CERTIFICATE_REQUESTS = defineResource(
  'certificates.k8s.io/v1',
  'certificatesigningrequests',
  {
    kind: 'CertificateSigningRequest',
    ...CLUSTER_SCOPED,
    hasStatus: true,
    shortNames: ['csr'],
    subresources: ['approval'],
  },
);
export const DEFINITIONS = defineResource('apiextensions.k8s.io/v1', 'customresourcedefinitions', {
  kind: 'CustomResourceDefinition',
  ...CLUSTER_SCOPED,
  hasStatus: true,
  hasGeneration: true,
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
});
const RBAC = 'rbac.authorization.k8s.io/v1';

export const RESOURCES: readonly Resource[] = [
  NAMESPACES,
  NODES,
  PODS,
  SECRETS,
  CONFIG_MAPS,
  SERVICE_ACCOUNTS,
  SERVICES,
  CLAIMS,
  VOLUMES,
  CORE_EVENTS,
  EVENTS,
  DEPLOYMENTS,
  REPLICA_SETS,
  STATEFUL_SETS,
  DAEMON_SETS,
  CONTROLLER_REVISIONS,
  JOBS,
  BUDGETS,
  LEASES,
  STORAGE_CLASSES,
  ATTACHMENTS,
  defineResource('storage.k8s.io/v1', 'csinodes', { kind: 'CSINode', ...CLUSTER_SCOPED }),
  defineResource('storage.k8s.io/v1', 'csidrivers', { kind: 'CSIDriver', ...CLUSTER_SCOPED }),
  defineResource('storage.k8s.io/v1', 'csistoragecapacities', { kind: 'CSIStorageCapacity' }),
  PRIORITY_CLASSES,
  CERTIFICATE_REQUESTS,
  DEFINITIONS,
  defineResource('v1', 'replicationcontrollers', {
    kind: 'ReplicationController',
    ...SCALABLE,
    shortNames: ['rc'],
  }),
  defineResource(RBAC, 'clusterroles', { kind: 'ClusterRole', ...CLUSTER_SCOPED }),
  defineResource(RBAC, 'clusterrolebindings', { kind: 'ClusterRoleBinding', ...CLUSTER_SCOPED }),
  defineResource(RBAC, 'roles', { kind: 'Role' }),
  defineResource(RBAC, 'rolebindings', { kind: 'RoleBinding' }),
];

/** As errors name it: `pods`, `deployments.apps`. */
export function qualifiedName({ plural, apiVersion }: Resource): string {
  return qualify(plural, apiVersion);
}

/** As errors about one object name it: `Pod`, `Deployment.apps`. */
export function qualifiedKind({ kind, apiVersion }: Resource): string {
  return qualify(kind, apiVersion);
}

function qualify(name: string, apiVersion: string): string {
  const { group } = splitApiVersion(apiVersion);
  return group === '' ? name : `${name}.${group}`;
}

/** Group and version; the group of `v1` is empty. */

export function splitApiVersion(apiVersion: string): {
  readonly group: string;
  readonly version: string;
} {
  const [group = '', version] = apiVersion.split('/');
  return version === undefined ? { group: '', version: group } : { group, version };
}
