// SPDX-License-Identifier: Apache-2.0
// The verbs of the API server without HTTP: validation, defaults, field ownership, preconditions and deletion.
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { ApiError, conflictError, notFoundError } from './api-error.ts';
import {
  checkApplyConfig,
  checkCustom,
  checkDeclared,
  checkDeletePreconditions,
  checkNameAndKind,
  checkProviderId,
  checkUid,
  throwIfInvalid,
} from './checks.ts';
import { ResourceRegistry } from './custom-resources.ts';
import { withDefaults } from './defaults.ts';
import { checkDefinition } from './definitions.ts';
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
import { DEFINITIONS, NAMESPACES, NODES, qualifiedName, type Resource } from './resources.ts';
import { validateBySchema } from './schema-validation.ts';
import type { ObjectFilter } from './selectors.ts';
import { applyConfig } from './server-side-apply.ts';
import { applyStrategicMergePatch } from './strategic-merge.ts';
import { conformValue } from './structural-schema.ts';

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
  readonly resources = new ResourceRegistry();
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

  /** The resource as it is stored. */
  requireResource(apiVersion: string, plural: string): Resource {
    const resource = this.resources.findStored(apiVersion, plural);
    if (resource === undefined) throw notFoundError('resource', plural);
    return resource;
  }

  create(address: ObjectAddress, body: JsonObject, manager: string): SimObject {
    const named = { ...address, name: address.name || this.#generateName(body) };
    this.#validateNew(named, body);
    const after = this.#admit(named, body);
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

  #admit(address: ObjectAddress, body: JsonObject): JsonObject {
    const { resource } = address;
    const { status, ...rest } = body;
    // A kubelet registers its Node with a status; every other status is dropped.
    const isStatusKept = !resource.hasStatus || resource === NODES;
    const given = isStatusKept && status !== undefined ? { ...rest, status } : rest;
    const after = withDefaults(resource, given, this.store);
    this.#validate(address, after);
    if (resource !== NODES || !this.#taintsNewNodes) return after;
    const spec = objectField(after, 'spec');
    const taints = Array.isArray(spec['taints']) ? spec['taints'] : [];
    return { ...after, spec: { ...spec, taints: [...taints, NOT_READY_TAINT] } };
  }

  replace(address: ObjectAddress, body: JsonObject, manager: string): SimObject {
    const current = this.store.get(address);
    throwIfInvalid(address, checkProviderId(address, current, body));
    const after = this.#prepareUpdate(
      address,
      current,
      keepStatus(address.resource, current, body),
    );
    return this.store.replace(address, this.#withOwnership({ address, current, after, manager }));
  }

  /** What the API server makes of an update before it compares it with the stored object. */
  #prepareUpdate(address: ObjectAddress, current: SimObject, body: JsonObject): JsonObject {
    const { resource } = address;
    if (resource.custom === undefined && resource !== DEFINITIONS) return body;
    this.#checkBodyPreconditions(address, current, body);
    const after = withDefaults(resource, body, this.store);
    this.#validate(address, after, current);
    return after;
  }

  #checkBodyPreconditions(address: ObjectAddress, current: SimObject, body: JsonObject): void {
    const metadata = objectField(body, 'metadata');
    const [uid, version] = [textField(metadata, 'uid'), textField(metadata, 'resourceVersion')];
    this.store.checkPreconditions(address, current, { uid, version });
  }

  #validate({ resource, name }: ObjectAddress, after: JsonObject, old?: SimObject): void {
    const { custom } = resource;
    const problems = resource === DEFINITIONS ? checkDefinition(name, after) : [];
    throwIfInvalid({ resource, name }, custom ? checkCustom(custom, after, old) : problems);
  }

  replaceStatus(address: ObjectAddress, body: JsonObject, manager: string): SimObject {
    const current = this.store.get(address);
    this.#checkBodyPreconditions(address, current, body);
    const { status: _former, ...rest } = current;
    const next = this.#prepareStatus(address, current, body);
    const after = next === undefined ? rest : { ...rest, status: next };
    const subresource = 'status';
    const tracked = this.#withOwnership({ address, current, after, manager, subresource });
    return this.store.replace(address, tracked);
  }

  #prepareStatus(
    address: ObjectAddress,
    { status: old }: SimObject,
    { status }: JsonObject,
  ): Json | undefined {
    const { custom } = address.resource;
    const schema = custom?.schema.properties.get('status');
    if (custom === undefined || schema === undefined) return status ?? old;
    if (status === undefined) return undefined;
    const value = conformValue(schema, status);
    throwIfInvalid(
      address,
      validateBySchema(schema, { value, old, field: 'status', hasRules: custom.hasRules }),
    );
    return value;
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
    const result = withRequestedVersion(applyPatch(current, patch), patch.body);
    return this.replaceStatus(address, result, patch.manager);
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
    checkDeclared(address, config);
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
    const after =
      subresource === ''
        ? this.#prepareUpdate(address, current, result)
        : { ...result, status: this.#prepareStatus(address, current, result) };
    return this.store.replace(address, withManagedFields(after, owners));
  }

  /** A uid in the configuration requires an existing object, so it prevents the creation. */
  #applyNew(address: ObjectAddress, config: JsonObject, writer: Writer): SimObject {
    const uid = textField(objectField(config, 'metadata'), 'uid');
    const plural = qualifiedName(address.resource);
    if (uid !== '') {
      const reason = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
      throw conflictError(plural, address.name, reason);
    }
    if (writer.subresource !== '') throw notFoundError(plural, address.name);
    this.#validateNew(address, config);
    const selected = selectSubresource(address.resource, config, '');
    const paths = new Set(listFields(selected).keys());
    const admitted = this.#admit(address, selected);
    return this.store.create(address, withManagedFields(admitted, [{ ...writer, paths }]));
  }

  #validateNew(address: ObjectAddress, body: JsonObject): void {
    const { resource, namespace, name } = address;
    checkNameAndKind(address, body);
    if (resource.custom?.isTerminating === true) {
      const message = `${qualifiedName(resource)} "${name}" is forbidden: create not allowed while custom resource definition is terminating`;
      throw new ApiError(403, 'Forbidden', message);
    }
    if (!resource.isNamespaced) return;
    const parent = this.store.get({ resource: NAMESPACES, namespace: '', name: namespace });
    if (!isTerminating(parent)) return;
    const message = `${qualifiedName(resource)} "${name}" is forbidden: unable to create new content in namespace ${namespace} because it is being terminated`;
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
    checkDeletePreconditions(address, current, { uid, version });
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
