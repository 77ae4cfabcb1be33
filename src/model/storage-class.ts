// SPDX-License-Identifier: Apache-2.0
// A StorageClass: which provisioner creates volumes, when they are bound, and where they can be.

import type { Requirement } from './requirement.ts';

export interface StorageClass {
  readonly name: string;
  readonly provisioner: string;
  /** `unset` only in objects without API server defaults. */
  readonly binding: 'immediate' | 'first-consumer' | 'unset';
  /** A node must match one of these. Empty: every node is allowed. */
  readonly allowedTopologies: readonly (readonly Requirement[])[];
}

/** A StorageClass object of the Kubernetes API. */
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
