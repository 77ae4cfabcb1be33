// SPDX-License-Identifier: Apache-2.0
// A StorageClass: who makes volumes of a kind, when, and where they can be.

import type { Requirement } from './requirement.ts';

export interface StorageClass {
  readonly name: string;
  readonly provisioner: string;
  /** `unset` only in objects that no API server has defaulted. */
  readonly binding: 'immediate' | 'first-consumer' | 'unset';
  /** One of these must hold for a node; none at all: every node will do. */
  readonly allowedTopologies: readonly (readonly Requirement[])[];
}

/** A StorageClass as it comes from the Kubernetes API. */
export interface StorageClassSource {
  readonly metadata: { readonly name: string };
  readonly provisioner?: string | null;
  readonly volumeBindingMode?: string | null;
  readonly allowedTopologies?:
    | readonly {
        readonly matchLabelExpressions?:
          | readonly { readonly key: string; readonly values?: readonly string[] | null }[]
          | null;
      }[]
    | null;
}

export function storageClassFromKubernetes(source: StorageClassSource): StorageClass {
  return {
    name: source.metadata.name,
    provisioner: source.provisioner ?? '',
    binding: readBinding(source.volumeBindingMode),
    allowedTopologies: (source.allowedTopologies ?? []).map((term) =>
      (term.matchLabelExpressions ?? []).map(({ key, values }) => ({
        key,
        operator: 'In',
        values: values ?? [],
      })),
    ),
  };
}

function readBinding(mode: string | null | undefined): StorageClass['binding'] {
  if (mode === null || mode === undefined) return 'unset';
  return mode === 'WaitForFirstConsumer' ? 'first-consumer' : 'immediate';
}
