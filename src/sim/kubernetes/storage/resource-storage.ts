// SPDX-License-Identifier: Apache-2.0
// The verbs of the API server without HTTP: validation, defaults, field ownership, preconditions and deletion.
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import {
  ApiError,
  conflictError,
  invalidError,
  notFoundError,
  type StatusCause,
} from './api-error.ts';
import { withDefaults } from './defaults.ts';
import { type DeleteOptions, planDeletion } from './deletion.ts';
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
  formatTime,
  isEqualJson,
  isObject,
  isTerminating,
  type Json,
  type JsonObject,
  objectField,
  type SimObject,
  textField,
} from './objects.ts';
import { applyJsonPatch, applyMergePatch } from './patch.ts';
import { findResource, NAMESPACES, NODES, type Resource } from './resources.ts';
import type { ObjectFilter } from './selectors.ts';
import { applyConfig } from './server-side-apply.ts';
import { applyStrategicMergePatch } from './strategic-merge.ts';

const INITIAL_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];
const NOT_READY_TAINT = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
const SUFFIX_LETTERS = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;

export type PatchKind = 'merge' | 'strategic' | 'json' | 'apply';

export interface Patch {
  readonly kind: PatchKind;
  readonly body: Json;
  readonly manager: string;
  /** Only for `apply`: takes ownership of conflicting fields. */
  readonly force?: boolean;
}

export interface StorageOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** New Nodes get the taint `not-ready`, which the node lifecycle controller removes. */
  readonly taintsNewNodes: boolean;
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
  readonly #random: Random;
  readonly #taintsNewNodes: boolean;

  constructor({ clock, random, taintsNewNodes }: StorageOptions) {
    this.store = new ObjectStore(clock, random);
    this.#clock = clock;
    this.#random = random;
    this.#taintsNewNodes = taintsNewNodes;
    for (const name of INITIAL_NAMESPACES) {
      const address = { resource: NAMESPACES, namespace: '', name };
      this.store.create(address, withDefaults(NAMESPACES, { metadata: { name } }, this.store));
    }
  }

  create(address: ObjectAddress, body: JsonObject, manager: string): SimObject {
    const named = { ...address, name: address.name || this.#generateName(body) };
    this.#validateNew(named, body);
    const after = this.#admit(named.resource, body);
    return this.store.create(named, this.#withOwnership({ address: named, after, manager }));
  }

  #generateName(body: JsonObject): string {
    const prefix = textField(objectField(body, 'metadata'), 'generateName');
    if (prefix === '') return '';
    const letters = Array.from(
      { length: SUFFIX_LENGTH },
      () => SUFFIX_LETTERS[this.#random.integer(SUFFIX_LETTERS.length)],
    );
    return `${prefix}${letters.join('')}`;
  }

  #admit(resource: Resource, body: JsonObject): JsonObject {
    const { status, ...rest } = body;
    // A kubelet registers its Node with a status; every other status is dropped.
    const isStatusKept = !resource.hasStatus || resource === NODES;
    const given = isStatusKept && status !== undefined ? { ...rest, status } : rest;
    const after = withDefaults(resource, given, this.store);
    if (resource !== NODES || !this.#taintsNewNodes) return after;
    const spec = objectField(after, 'spec');
    const taints = Array.isArray(spec['taints']) ? spec['taints'] : [];
    return { ...after, spec: { ...spec, taints: [...taints, NOT_READY_TAINT] } };
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

  /** Patches the object and its status at once, as only the server itself can. */
  patchWithStatus(address: ObjectAddress, patch: Patch): SimObject {
    const current = this.store.get(address);
    const after = withRequestedVersion(applyPatch(current, patch), patch.body);
    const { manager } = patch;
    return this.store.replace(address, this.#withOwnership({ address, current, after, manager }));
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
    const admitted = this.#admit(address.resource, config);
    return this.store.create(address, withManagedFields(admitted, [{ ...writer, paths }]));
  }

  #validateNew(address: ObjectAddress, body: JsonObject): void {
    const { resource, namespace, name } = address;
    checkNameAndKind(address, body);
    if (!resource.isNamespaced) return;
    const parent = this.store.get({ resource: NAMESPACES, namespace: '', name: namespace });
    if (!isTerminating(parent)) return;
    const message = `${resource.plural} "${name}" is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`;
    throw new ApiError(403, 'Forbidden', message, [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ]);
  }

  /** The new object with updated `managedFields`. Ignores the `managedFields` in the request. */
  #withOwnership({ address, current, after, manager, subresource = '' }: TrackedWrite): JsonObject {
    const oldFields = listFields(current ?? {});
    const newFields = listFields(after);
    const isChanged = ([path, value]: readonly [string, Json]) =>
      !isEqualJson(oldFields.get(path), value);
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
    const time = formatTime(this.#clock.now());
    return { manager, operation, subresource, apiVersion, time };
  }

  /**
   * Deletes the object, or marks it as terminating: a pod on a node ends within its grace period, an object with
   * finalizers when they are removed.
   */
  delete(address: ObjectAddress, options: DeleteOptions = {}): SimObject {
    const current = this.store.get(address);
    const preconditions = objectField(options, 'preconditions');
    const uid = textField(preconditions, 'uid');
    const version = textField(preconditions, 'resourceVersion');
    this.store.checkPreconditions(address, current, { uid, version });
    const plan = planDeletion(address.resource, current, { options, now: this.#clock.now() });
    if (plan === 'at-once') return this.store.delete(address, uid);
    return this.store.markTerminating(address, plan);
  }

  /** Deletes all selected objects; returns them. */
  deleteCollection(
    { resource, namespace }: Omit<ObjectAddress, 'name'>,
    filter: ObjectFilter,
    options: DeleteOptions,
  ): readonly SimObject[] {
    return this.store
      .list(resource, namespace)
      .filter(filter)
      .map(({ metadata: { name, namespace: own = '' } }) =>
        this.delete({ resource, namespace: own, name }, options),
      );
  }
}

export function requireResource(apiVersion: string, plural: string): Resource {
  const resource = findResource(apiVersion, plural);
  if (resource === undefined) throw notFoundError('resource', plural);
  return resource;
}

function applyPatch(current: SimObject, { kind, body }: Patch): JsonObject {
  const result = computePatch(current, kind, body);
  if (isObject(result)) return result;
  throw new ApiError(400, 'BadRequest', 'the patch leaves no object');
}

function computePatch(current: SimObject, kind: PatchKind, body: Json): Json {
  if (kind === 'json' && Array.isArray(body)) return applyJsonPatch(current, body);
  return kind === 'strategic'
    ? applyStrategicMergePatch(current, body)
    : applyMergePatch(current, body);
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
  if (name === '') {
    throw invalidError(`${resource.kind} ""`, [
      {
        reason: 'FieldValueRequired',
        message: 'Required value: name or generateName is required',
        field: 'metadata.name',
      },
    ]);
  }
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
