// SPDX-License-Identifier: Apache-2.0
// The verbs, as the API server carries them out, apart from HTTP.
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { ApiError, notFound } from './api-error.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  objectIn,
  type SimObject,
  textIn,
} from './objects.ts';
import { jsonPatch, mergePatch } from './patch.ts';
import { findResource, type Resource } from './resources.ts';
import { type Address, Store } from './store.ts';

const FIRST_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

export type PatchKind = 'merge' | 'json' | 'apply';

export class World {
  readonly store: Store;
  readonly #clock: Clock;

  constructor(clock: Clock, random: Random) {
    this.store = new Store(clock, random);
    this.#clock = clock;
    for (const name of FIRST_NAMESPACES) {
      this.store.create({ resource: known('v1', 'namespaces'), namespace: '', name }, {});
    }
  }

  create(address: Address, body: JsonObject): SimObject {
    const { resource, namespace } = address;
    if (resource.isNamespaced) {
      this.store.get({ resource: known('v1', 'namespaces'), namespace: '', name: namespace });
    }
    validate(address, body);
    return this.store.create(address, body);
  }

  replace(address: Address, body: JsonObject): SimObject {
    const current = this.store.get(address);
    validateUpdate(address, current, body);
    return this.store.replace(address, withStatusOf(address.resource, current, body));
  }

  replaceStatus(address: Address, body: JsonObject): SimObject {
    const current = this.store.get(address);
    const { status, ...rest } = current;
    return this.store.replace(address, { ...rest, status: body['status'] ?? status });
  }

  // oxlint-disable-next-line max-params -- what, how, and with what
  patch(address: Address, kind: PatchKind, patch: Json): SimObject {
    if (kind === 'apply' && this.store.find(address) === undefined) {
      return this.create(address, isObject(patch) ? patch : {});
    }
    const current = this.store.get(address);
    return this.replace(address, unlessVersioned(patched(current, kind, patch), patch));
  }

  // oxlint-disable-next-line max-params -- what, how, and with what
  patchStatus(address: Address, kind: PatchKind, patch: Json): SimObject {
    const current = this.store.get(address);
    return this.replaceStatus(address, patched(current, kind, patch));
  }

  /** A pod that runs somewhere ends in its own time: its kubelet takes it away. */
  delete(address: Address, uid: string): SimObject {
    const current = this.store.get(address);
    const isRunning =
      address.resource.plural === 'pods' && textIn(objectIn(current, 'spec'), 'nodeName') !== '';
    if (!isRunning) return this.store.delete(address, uid);
    const { deletionTimestamp = new Date(this.#clock.now()).toISOString() } = current.metadata;
    const { uid: own } = current.metadata;
    const metadata = { ...current.metadata, uid: uid === '' ? own : uid, deletionTimestamp };
    return this.store.replace(address, { ...current, metadata });
  }

  evict(address: Address, body: JsonObject): void {
    const pod = this.store.get(address);
    const budgets = this.#budgetsOf(pod, address.namespace);
    if (budgets.length > 1) {
      const message =
        'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
      throw new ApiError(500, 'InternalError', message);
    }
    const [budget] = budgets;
    if (budget !== undefined && objectIn(budget, 'status')['disruptionsAllowed'] !== 1) {
      throw new ApiError(
        429,
        'TooManyRequests',
        "Cannot evict pod as it would violate the pod's disruption budget.",
        [
          {
            reason: 'DisruptionBudget',
            message: `The disruption budget ${budget.metadata.name} needs 1 healthy pods`,
          },
        ],
      );
    }
    const uid = textIn(objectIn(objectIn(body, 'deleteOptions'), 'preconditions'), 'uid');
    this.delete(address, uid);
  }

  #budgetsOf(pod: SimObject, namespace: string): readonly SimObject[] {
    const labels = objectIn(pod.metadata, 'labels');
    return this.store
      .list(known('policy/v1', 'poddisruptionbudgets'), namespace)
      .filter((budget) => {
        const wanted = objectIn(objectIn(objectIn(budget, 'spec'), 'selector'), 'matchLabels');
        return Object.entries(wanted).every(([key, value]) => labels[key] === value);
      });
  }
}

export function known(apiVersion: string, plural: string): Resource {
  const resource = findResource(apiVersion, plural);
  if (resource === undefined) throw notFound('resource', plural);
  return resource;
}

function patched(current: SimObject, kind: PatchKind, patch: Json): JsonObject {
  const result =
    kind === 'json' && Array.isArray(patch)
      ? jsonPatch(current, patch)
      : mergePatch(current, patch);
  if (isObject(result)) return result;
  throw new ApiError(400, 'BadRequest', 'the patch leaves no object');
}

/** A version is a precondition only where the patch names it: the one of the current object is not. */
function unlessVersioned(result: JsonObject, patch: Json): JsonObject {
  const named = isObject(patch) ? objectIn(patch, 'metadata')['resourceVersion'] : undefined;
  return { ...result, metadata: { ...objectIn(result, 'metadata'), resourceVersion: named ?? '' } };
}

function withStatusOf(resource: Resource, current: SimObject, body: JsonObject): JsonObject {
  if (!resource.hasStatus) return body;
  const { status: _ignored, ...rest } = body;
  return current['status'] === undefined ? rest : { ...rest, status: current['status'] };
}

function validate({ resource, name }: Address, body: JsonObject): void {
  if (!/^[a-z0-9]([a-z0-9.:-]*[a-z0-9])?$/.test(name)) {
    throw new ApiError(
      422,
      'Invalid',
      `${resource.kind} "${name}" is invalid: metadata.name: Invalid value`,
    );
  }
  const kind = body['kind'];
  if (kind !== undefined && kind !== resource.kind) {
    throw new ApiError(400, 'BadRequest', 'the object provided is unrecognized');
  }
}

function validateUpdate({ resource, name }: Address, current: SimObject, body: JsonObject): void {
  if (resource.kind !== 'Node') return;
  const before = textIn(objectIn(current, 'spec'), 'providerID');
  if (before !== '' && before !== textIn(objectIn(body, 'spec'), 'providerID')) {
    const why =
      'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid';
    throw new ApiError(422, 'Invalid', `Node "${name}" is invalid: ${why}`);
  }
}
