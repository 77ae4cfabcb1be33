// SPDX-License-Identifier: Apache-2.0
// Which fields of a Node are held by what was applied from here. Kubernetes keeps the account, field by field.
import { FIELD_MANAGER } from './api.ts';
import type { ObjectMeta } from './objects.ts';
import { recordOf } from './status.ts';

export interface HeldFields {
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
  readonly providerId: boolean;
}

/** Most Nodes of a cluster may be nobody's business here. */
const NOTHING: HeldFields = { labels: [], annotations: [], providerId: false };

export function heldFields({ managedFields }: ObjectMeta): HeldFields {
  const entry = managedFields?.find(
    ({ manager, operation, subresource = '' }) =>
      manager === FIELD_MANAGER && operation === 'Apply' && subresource === '',
  );
  if (entry === undefined) return NOTHING;
  const { 'f:metadata': metadata, 'f:spec': spec } = recordOf(entry.fieldsV1);
  return {
    labels: keysIn(recordOf(metadata)['f:labels']),
    annotations: keysIn(recordOf(metadata)['f:annotations']),
    providerId: recordOf(spec)['f:providerID'] !== undefined,
  };
}

/** A dot among them stands for the map itself. */
function keysIn(map: unknown): readonly string[] {
  return Object.keys(recordOf(map)).flatMap((name) =>
    name.startsWith('f:') ? [name.slice(2)] : [],
  );
}
