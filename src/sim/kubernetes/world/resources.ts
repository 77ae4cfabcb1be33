// SPDX-License-Identifier: Apache-2.0

export interface Resource {
  /** `v1`, or `group/version`. */
  readonly apiVersion: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** Status is written by a path of its own, and left alone by all others. */
  readonly hasStatus: boolean;
}

function resource(apiVersion: string, plural: string, rest: Partial<Resource>): Resource {
  return { apiVersion, plural, kind: '', isNamespaced: true, hasStatus: false, ...rest };
}

export const RESOURCES: readonly Resource[] = [
  resource('v1', 'namespaces', { kind: 'Namespace', isNamespaced: false, hasStatus: true }),
  resource('v1', 'nodes', { kind: 'Node', isNamespaced: false, hasStatus: true }),
  resource('v1', 'pods', { kind: 'Pod', hasStatus: true }),
  resource('v1', 'secrets', { kind: 'Secret' }),
  resource('v1', 'configmaps', { kind: 'ConfigMap' }),
  resource('coordination.k8s.io/v1', 'leases', { kind: 'Lease' }),
  resource('events.k8s.io/v1', 'events', { kind: 'Event' }),
  resource('policy/v1', 'poddisruptionbudgets', { kind: 'PodDisruptionBudget', hasStatus: true }),
];

export function findResource(apiVersion: string, plural: string): Resource | undefined {
  return RESOURCES.find((one) => one.apiVersion === apiVersion && one.plural === plural);
}
