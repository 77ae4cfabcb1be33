// SPDX-License-Identifier: Apache-2.0
// The scale subresource of workloads.
import { ApiError } from './api-error.ts';
import type { ObjectAddress } from './object-store.ts';
import {
  type JsonObject,
  numberField,
  objectField,
  type SimObject,
  specOf,
  statusOf,
  textField,
  textMap,
} from './objects.ts';
import { applyMergePatch } from './patch.ts';
import type { Patch, ResourceStorage } from './resource-storage.ts';

export function readScale(object: SimObject): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const labels = textMap(objectField(specOf(object), 'selector'), 'matchLabels');
  const selector = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: numberField(specOf(object), 'replicas') },
    status: {
      replicas: numberField(statusOf(object), 'replicas'),
      selector: selector.join(','),
    },
  };
}

/** Sets the replicas to those of a Scale object. */
export function replaceScale(
  storage: ResourceStorage,
  address: ObjectAddress,
  { scale, manager }: { readonly scale: JsonObject; readonly manager: string },
): JsonObject {
  const replicas = objectField(scale, 'spec')['replicas'];
  if (typeof replicas !== 'number' || replicas < 0) {
    throw new ApiError(422, 'Invalid', 'Scale is invalid: spec.replicas: Invalid value');
  }
  const resourceVersion = textField(objectField(scale, 'metadata'), 'resourceVersion');
  const metadata = resourceVersion === '' ? {} : { metadata: { resourceVersion } };
  const body = { ...metadata, spec: { replicas } };
  return readScale(storage.patch(address, { kind: 'merge', body, manager }));
}

export function patchScale(
  storage: ResourceStorage,
  address: ObjectAddress,
  { body, manager }: Patch,
): JsonObject {
  const current = readScale(storage.store.get(address));

  const scale = applyMergePatch(current, body);
  if (typeof scale !== 'object' || scale === null || Array.isArray(scale)) {
    throw new ApiError(400, 'BadRequest', 'the patch leaves no object');
  }
  return replaceScale(storage, address, {
    scale: { ...current, ...objectField({ scale }, 'scale') },
    manager,
  });
}
