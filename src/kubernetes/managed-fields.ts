// SPDX-License-Identifier: Apache-2.0
// Reads from managedFields which fields of a Node our field manager owns.
import { FIELD_MANAGER } from './api-client.ts';
import type { ObjectMeta } from './objects.ts';
import { asRecord } from './status.ts';

interface ManagedFields {
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
  readonly providerId: boolean;
}

/** Shared, because most Nodes of a cluster may be unmanaged. */
const NO_FIELDS: ManagedFields = { labels: [], annotations: [], providerId: false };

export function readManagedFields({ managedFields }: ObjectMeta): ManagedFields {
  const entry = managedFields?.find(
    ({ manager, operation, subresource = '' }) =>
      manager === FIELD_MANAGER && operation === 'Apply' && subresource === '',
  );
  if (entry === undefined) return NO_FIELDS;
  const { 'f:metadata': metadata, 'f:spec': spec } = asRecord(entry.fieldsV1);
  return {
    labels: fieldKeys(asRecord(metadata)['f:labels']),
    annotations: fieldKeys(asRecord(metadata)['f:annotations']),
    providerId: asRecord(spec)['f:providerID'] !== undefined,
  };
}

/** Skips the dot, which stands for the map itself. */
function fieldKeys(map: unknown): readonly string[] {
  return Object.keys(asRecord(map)).flatMap((name) =>
    name.startsWith('f:') ? [name.slice(2)] : [],
  );
}
