// SPDX-License-Identifier: Apache-2.0

export interface Resource {
  /** `v1`, or `group/version`. */
  readonly apiVersion: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** The status is a subresource: only writes to `…/status` change it. */
  readonly hasStatus: boolean;
}

function defineResource(apiVersion: string, plural: string, rest: Partial<Resource>): Resource {
  return { apiVersion, plural, kind: '', isNamespaced: true, hasStatus: false, ...rest };
}

export const RESOURCES: readonly Resource[] = [
  defineResource('v1', 'namespaces', { kind: 'Namespace', isNamespaced: false, hasStatus: true }),
  defineResource('v1', 'nodes', { kind: 'Node', isNamespaced: false, hasStatus: true }),
  defineResource('v1', 'pods', { kind: 'Pod', hasStatus: true }),
  defineResource('v1', 'secrets', { kind: 'Secret' }),
  defineResource('v1', 'configmaps', { kind: 'ConfigMap' }),
  defineResource('coordination.k8s.io/v1', 'leases', { kind: 'Lease' }),
  defineResource('events.k8s.io/v1', 'events', { kind: 'Event' }),
  defineResource('policy/v1', 'poddisruptionbudgets', {
    kind: 'PodDisruptionBudget',
    hasStatus: true,
  }),
  defineResource('apps/v1', 'daemonsets', { kind: 'DaemonSet', hasStatus: true }),
  defineResource('v1', 'persistentvolumes', {
    kind: 'PersistentVolume',
    isNamespaced: false,
    hasStatus: true,
  }),
  defineResource('v1', 'persistentvolumeclaims', {
    kind: 'PersistentVolumeClaim',
    hasStatus: true,
  }),
  defineResource('storage.k8s.io/v1', 'storageclasses', {
    kind: 'StorageClass',
    isNamespaced: false,
  }),
  defineResource('storage.k8s.io/v1', 'csinodes', { kind: 'CSINode', isNamespaced: false }),
  defineResource('storage.k8s.io/v1', 'csidrivers', { kind: 'CSIDriver', isNamespaced: false }),
  defineResource('storage.k8s.io/v1', 'csistoragecapacities', { kind: 'CSIStorageCapacity' }),
  defineResource('storage.k8s.io/v1', 'volumeattachments', {
    kind: 'VolumeAttachment',
    isNamespaced: false,
    hasStatus: true,
  }),
];

export function findResource(apiVersion: string, plural: string): Resource | undefined {
  return RESOURCES.find((one) => one.apiVersion === apiVersion && one.plural === plural);
}
