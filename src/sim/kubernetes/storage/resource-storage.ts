// SPDX-License-Identifier: Apache-2.0
// The verbs of the API server without HTTP: validation, field ownership, preconditions and evictions.
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import {
  ApiError,
  conflictError,
  invalidError,
  notFoundError,
  type StatusCause,
} from './api-error.ts';
import { listFields } from './field-paths.ts';
import {
  type FieldOwnership,
  formatManagedFields,
  readOwnerships,
  updateOwnerships,
  type Writer,
} from './managed-fields.ts';
import { type ObjectAddress, ObjectStore } from './object-store.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  objectField,
  type SimObject,
  textField,
} from './objects.ts';
import { applyJsonPatch, applyMergePatch } from './patch.ts';
import { findResource, type Resource } from './resources.ts';
import { applyConfig } from './server-side-apply.ts';

const INITIAL_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

export type PatchKind = 'merge' | 'json' | 'apply';

export interface Patch {
  readonly kind: PatchKind;
  readonly body: Json;
  readonly manager: string;
  /** Only for `apply`: takes ownership of conflicting fields. */
  readonly force?: boolean;
}

interface TrackedWrite {
  readonly address: ObjectAddress;
  /** Absent for a new object. */
  readonly current?: SimObject;
  readonly after: JsonObject;
  readonly manager: string;
  readonly subresource?: string;
}

export class ResourceStorage {
  readonly store: ObjectStore;
  readonly #clock: Clock;

  constructor(clock: Clock, random: Random) {
    this.store = new ObjectStore(clock, random);
    this.#clock = clock;
    for (const name of INITIAL_NAMESPACES) {
      this.store.create({ resource: requireResource('v1', 'namespaces'), namespace: '', name }, {});
    }
  }

  create(address: ObjectAddress, body: JsonObject, manager: string): SimObject {
    this.#validateNew(address, body);
    return this.store.create(address, this.#withOwnership({ address, after: body, manager }));
  }

  replace(address: ObjectAddress, body: JsonObject, manager: string): SimObject {
    const current = this.store.get(address);
    throwIfInvalid(address, checkProviderId(address, current, body));
    const after = keepStatus(address.resource, current, body);
    return this.store.replace(address, this.#withOwnership({ address, current, after, manager }));
  }

  replaceStatus(address: ObjectAddress, body: JsonObject, manager: string): SimObject {
    const current = this.store.get(address);
    const { status, ...rest } = current;
    const after = { ...rest, status: body['status'] ?? status };
    const subresource = 'status';
    const tracked = this.#withOwnership({ address, current, after, manager, subresource });
    return this.store.replace(address, tracked);
  }

  patch(address: ObjectAddress, patch: Patch): SimObject {
    if (patch.kind === 'apply') return this.#apply(address, patch);
    const current = this.store.get(address);
    const result = withRequestedVersion(applyPatch(current, patch), patch.body);
    throwIfInvalid(address, [
      ...checkUid(current, result),
      ...checkProviderId(address, current, result),
    ]);
    return this.replace(address, result, patch.manager);
  }

  patchStatus(address: ObjectAddress, patch: Patch): SimObject {
    if (patch.kind === 'apply') return this.#apply(address, patch, 'status');
    const current = this.store.get(address);
    return this.replaceStatus(address, applyPatch(current, patch), patch.manager);
  }

  #apply(address: ObjectAddress, patch: Patch, subresource = ''): SimObject {
    const config = checkApplyConfig(address, patch.body);
    const writer = this.#createWriter(address, { ...patch, subresource, operation: 'Apply' });
    const current = this.store.find(address);
    if (current === undefined) return this.#applyNew(address, config, writer);
    const { object, owners } = applyConfig({
      current,
      owners: readOwnerships(current),
      config: selectSubresource(address.resource, config, subresource),
      writer,
      force: patch.force ?? false,
    });
    const versioned = withRequestedVersion(object, config);
    const { uid = current.metadata.uid } = objectField(config, 'metadata');
    const result = { ...versioned, metadata: { ...objectField(versioned, 'metadata'), uid } };
    throwIfInvalid(address, [
      ...checkUid(current, result),
      ...checkProviderId(address, current, result),
    ]);
    return this.store.replace(address, withManagedFields(result, owners));
  }

  /** A uid in the configuration requires an existing object, so it prevents the creation. */
  #applyNew(address: ObjectAddress, config: JsonObject, writer: Writer): SimObject {
    const uid = textField(objectField(config, 'metadata'), 'uid');
    const { plural } = address.resource;
    if (uid !== '') {
      const reason = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
      throw conflictError(plural, address.name, reason);
    }
    if (writer.subresource !== '') throw notFoundError(plural, address.name);
    this.#validateNew(address, config);
    const paths = new Set(listFields(config).keys());
    return this.store.create(address, withManagedFields(config, [{ ...writer, paths }]));
  }

  #validateNew(address: ObjectAddress, body: JsonObject): void {
    const { resource, namespace } = address;
    if (resource.isNamespaced) {
      this.store.get({
        resource: requireResource('v1', 'namespaces'),
        namespace: '',
        name: namespace,
      });
    }
    checkNameAndKind(address, body);
  }

  /** The new object with updated `managedFields`. Ignores the `managedFields` in the request. */
  #withOwnership({ address, current, after, manager, subresource = '' }: TrackedWrite): JsonObject {
    const oldFields = listFields(current ?? {});
    const newFields = listFields(after);
    const isChanged = ([path, value]: readonly [string, Json]) =>
      JSON.stringify(oldFields.get(path)) !== JSON.stringify(value);
    const owners = updateOwnerships(readOwnerships(current), {
      writer: this.#createWriter(address, { manager, subresource, operation: 'Update' }),
      changed: new Set([...newFields].filter(isChanged).map(([path]) => path)),
      removed: new Set([...oldFields.keys()].filter((path) => !newFields.has(path))),
    });
    return withManagedFields(after, owners);
  }

  #createWriter(
    { resource: { apiVersion } }: ObjectAddress,
    { manager, operation, subresource }: Pick<Writer, 'manager' | 'operation' | 'subresource'>,
  ): Writer {
    const time = new Date(this.#clock.now()).toISOString().replace(/\.\d+Z/, 'Z');
    return { manager, operation, subresource, apiVersion, time };
  }

  /** Deletes the object. A pod on a node is only marked as terminating; its kubelet removes it. */
  delete(address: ObjectAddress, uid: string): SimObject {
    const current = this.store.get(address);
    const isRunning =
      address.resource.plural === 'pods' &&
      textField(objectField(current, 'spec'), 'nodeName') !== '';
    if (!isRunning) return this.store.delete(address, uid);
    const { deletionTimestamp = new Date(this.#clock.now()).toISOString() } = current.metadata;
    const { uid: currentUid } = current.metadata;
    const metadata = { ...current.metadata, uid: uid === '' ? currentUid : uid, deletionTimestamp };
    return this.store.replace(address, { ...current, metadata });
  }

  evict(address: ObjectAddress, body: JsonObject): void {
    const pod = this.store.get(address);
    const budgets = this.#findBudgets(pod, address.namespace);
    if (budgets.length > 1) {
      const message =
        'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
      throw new ApiError(500, 'InternalError', message);
    }
    const [budget] = budgets;
    if (budget !== undefined && disruptionsAllowed(budget) < 1) {
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
    const uid = textField(objectField(objectField(body, 'deleteOptions'), 'preconditions'), 'uid');
    this.delete(address, uid);
  }

  #findBudgets(pod: SimObject, namespace: string): readonly SimObject[] {
    const labels = objectField(pod.metadata, 'labels');
    return this.store
      .list(requireResource('policy/v1', 'poddisruptionbudgets'), namespace)
      .filter((budget) => {
        const selector = objectField(
          objectField(objectField(budget, 'spec'), 'selector'),
          'matchLabels',
        );
        return Object.entries(selector).every(([key, value]) => labels[key] === value);
      });
  }
}

function disruptionsAllowed(budget: SimObject): number {
  return Number(objectField(budget, 'status')['disruptionsAllowed'] ?? 0);
}

export function requireResource(apiVersion: string, plural: string): Resource {
  const resource = findResource(apiVersion, plural);
  if (resource === undefined) throw notFoundError('resource', plural);
  return resource;
}

function applyPatch(current: SimObject, { kind, body }: Patch): JsonObject {
  const result =
    kind === 'json' && Array.isArray(body)
      ? applyJsonPatch(current, body)
      : applyMergePatch(current, body);
  if (isObject(result)) return result;
  throw new ApiError(400, 'BadRequest', 'the patch leaves no object');
}

function withManagedFields(object: JsonObject, owners: readonly FieldOwnership[]): JsonObject {
  const metadata = {
    ...objectField(object, 'metadata'),
    managedFields: formatManagedFields(owners),
  };
  return { ...object, metadata };
}

function checkApplyConfig({ resource, name }: ObjectAddress, body: Json): JsonObject {
  const config = isObject(body) ? body : {};
  const { apiVersion, kind } = {
    apiVersion: textField(config, 'apiVersion'),
    kind: textField(config, 'kind'),
  };
  const metadata = objectField(config, 'metadata');
  if (apiVersion !== resource.apiVersion || kind !== resource.kind) {
    const group = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
    throw new ApiError(400, 'BadRequest', `invalid object type: ${group}, Kind=${kind}`);
  }
  if (metadata['managedFields'] !== undefined) {
    throw new ApiError(400, 'BadRequest', 'metadata.managedFields must be nil');
  }
  const given = textField(metadata, 'name') || name;
  if (given === name) return config;
  const message = `the name of the object (${given}) does not match the name on the URL (${name})`;
  throw new ApiError(400, 'BadRequest', message);
}

/** Keeps only the status for the status subresource, and drops it otherwise. */
function selectSubresource(
  resource: Resource,
  config: JsonObject,
  subresource: string,
): JsonObject {
  const { status, ...rest } = config;
  if (subresource !== '') return status === undefined ? {} : { status };
  return resource.hasStatus ? rest : config;
}

/** The resource version is a precondition only if the patch contains it. */
function withRequestedVersion(result: JsonObject, patch: Json): JsonObject {
  const version = isObject(patch) ? objectField(patch, 'metadata')['resourceVersion'] : undefined;
  return {
    ...result,
    metadata: { ...objectField(result, 'metadata'), resourceVersion: version ?? '' },
  };
}

function keepStatus(resource: Resource, current: SimObject, body: JsonObject): JsonObject {
  if (!resource.hasStatus) return body;
  const { status: _ignored, ...rest } = body;
  return current['status'] === undefined ? rest : { ...rest, status: current['status'] };
}

function checkNameAndKind({ resource, name }: ObjectAddress, body: JsonObject): void {
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

type FieldProblem = StatusCause & { readonly field: string };

function throwIfInvalid(
  { resource, name }: ObjectAddress,
  problems: readonly FieldProblem[],
): void {
  if (problems.length > 0) throw invalidError(`${resource.kind} "${name}"`, problems);
}

/** Only for patches. A `PUT` with another uid fails with a precondition conflict instead. */
function checkUid({ metadata }: SimObject, after: JsonObject): readonly FieldProblem[] {
  const uid = textField(objectField(after, 'metadata'), 'uid');
  if (uid === metadata.uid) return [];
  const message = `Invalid value: "${uid}": field is immutable`;
  return [{ reason: 'FieldValueInvalid', message, field: 'metadata.uid' }];
}

function checkProviderId(
  { resource }: ObjectAddress,
  current: SimObject,
  after: JsonObject,
): readonly FieldProblem[] {
  if (resource.kind !== 'Node') return [];
  const before = textField(objectField(current, 'spec'), 'providerID');
  if (before === '' || before === textField(objectField(after, 'spec'), 'providerID')) return [];
  const message = 'Forbidden: node updates may not change providerID except from "" to valid';
  return [{ reason: 'FieldValueForbidden', message, field: 'spec.providerID' }];
}
