// SPDX-License-Identifier: Apache-2.0
// The scale subresource of workloads.
import { ApiError } from './api-error.ts';
import type { ObjectAddress } from './object-store.ts';
import {
  type Json,
  type JsonObject,
  numberField,
  objectField,
  readPath,
  type SimObject,
  specOf,
  textField,
  textMap,
} from './objects.ts';
import { applyMergePatch } from './patch.ts';
import type { Patch, ResourceStorage } from './resource-storage.ts';
import type { Resource } from './resources.ts';

export function readScale({ custom }: Resource, object: SimObject): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const labels = textMap(objectField(specOf(object), 'selector'), 'matchLabels');
  const selector = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  const { scale } = custom ?? {};
  const count = (path: readonly string[]) => numberField({ at: readPath(object, path) }, 'at');
  const chosen = scale?.selector && readPath(object, scale.selector);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { replicas: count(scale?.spec ?? ['spec', 'replicas']) },
    status: {
      replicas: count(scale?.status ?? ['status', 'replicas']),
      ...(scale === undefined ? { selector: selector.join(',') } : chosen && { selector: chosen }),
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
  const { custom } = address.resource;
  // The schema of a custom resource decides about negative numbers.
  if (typeof replicas !== 'number' || (replicas < 0 && custom === undefined)) {
    throw new ApiError(422, 'Invalid', 'Scale is invalid: spec.replicas: Invalid value');
  }
  const resourceVersion = textField(objectField(scale, 'metadata'), 'resourceVersion');
  const metadata = resourceVersion === '' ? {} : { metadata: { resourceVersion } };
  const path = custom?.scale?.spec ?? ['spec', 'replicas'];
  const change = path.reduceRight<Json>((inner, key) => ({ [key]: inner }), replicas);
  const body = { ...metadata, ...objectField({ change }, 'change') };
  return readScale(address.resource, storage.patch(address, { kind: 'merge', body, manager }));
}

export function patchScale(
  storage: ResourceStorage,
  address: ObjectAddress,
  { body, manager }: Patch,
): JsonObject {
  const current = readScale(address.resource, storage.store.get(address));

  const scale = applyMergePatch(current, body);
  if (typeof scale !== 'object' || scale === null || Array.isArray(scale)) {
    throw new ApiError(400, 'BadRequest', 'the patch leaves no object');
  }
  return replaceScale(storage, address, {
    scale: { ...current, ...objectField({ scale }, 'scale') },
    manager,
  });
}
