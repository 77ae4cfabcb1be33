// SPDX-License-Identifier: Apache-2.0
// The verbs, as the API server carries them out, apart from HTTP.
import type { Clock } from '../../../ports/clock.ts';
import type { Random } from '../../../ports/random.ts';
import { ApiError, type Cause, conflict, invalid, notFound } from './api-error.ts';
import { apply } from './apply.ts';
import { fieldsOf } from './field-paths.ts';
import {
  afterUpdate,
  entriesOf,
  type Ownership,
  ownershipsOf,
  type Writer,
} from './managed-fields.ts';
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

export interface Patch {
  readonly kind: PatchKind;
  readonly body: Json;
  /** Who does it. */
  readonly manager: string;
  /** Of an apply: what others own is taken. */
  readonly force?: boolean;
}

interface Tracking {
  readonly address: Address;
  /** Absent: it is new. */
  readonly current?: SimObject;
  readonly after: JsonObject;
  readonly manager: string;
  readonly subresource?: string;
}

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

  create(address: Address, body: JsonObject, manager: string): SimObject {
    this.#validateNew(address, body);
    return this.store.create(address, this.#tracked({ address, after: body, manager }));
  }

  replace(address: Address, body: JsonObject, manager: string): SimObject {
    const current = this.store.get(address);
    demandValid(address, providerIdProblems(address, current, body));
    const after = withStatusOf(address.resource, current, body);
    return this.store.replace(address, this.#tracked({ address, current, after, manager }));
  }

  replaceStatus(address: Address, body: JsonObject, manager: string): SimObject {
    const current = this.store.get(address);
    const { status, ...rest } = current;
    const after = { ...rest, status: body['status'] ?? status };
    const subresource = 'status';
    const tracked = this.#tracked({ address, current, after, manager, subresource });
    return this.store.replace(address, tracked);
  }

  patch(address: Address, patch: Patch): SimObject {
    if (patch.kind === 'apply') return this.#apply(address, patch);
    const current = this.store.get(address);
    const result = unlessVersioned(patched(current, patch), patch.body);
    demandValid(address, [
      ...uidProblems(current, result),
      ...providerIdProblems(address, current, result),
    ]);
    return this.replace(address, result, patch.manager);
  }

  patchStatus(address: Address, patch: Patch): SimObject {
    if (patch.kind === 'apply') return this.#apply(address, patch, 'status');
    const current = this.store.get(address);
    return this.replaceStatus(address, patched(current, patch), patch.manager);
  }

  // oxlint-disable-next-line max-params -- what is applied where
  #apply(address: Address, patch: Patch, subresource = ''): SimObject {
    const config = checkedConfig(address, patch.body);
    const by = this.#writer(address, { ...patch, subresource, operation: 'Apply' });
    const current = this.store.find(address);
    if (current === undefined) return this.#applyNew(address, config, by);
    const { object, owners } = apply({
      current,
      owners: ownershipsOf(current),
      config: partOf(address.resource, config, subresource),
      by,
      force: patch.force ?? false,
    });
    const given = unlessVersioned(object, config);
    const { uid = current.metadata.uid } = objectIn(config, 'metadata');
    const result = { ...given, metadata: { ...objectIn(given, 'metadata'), uid } };
    demandValid(address, [
      ...uidProblems(current, result),
      ...providerIdProblems(address, current, result),
    ]);
    return this.store.replace(address, withOwners(result, owners));
  }

  /** Who names a uid means an object that is there. */
  // oxlint-disable-next-line max-params -- what is made where, by whom
  #applyNew(address: Address, config: JsonObject, by: Writer): SimObject {
    const uid = textIn(objectIn(config, 'metadata'), 'uid');
    const { plural } = address.resource;
    if (uid !== '') {
      const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
      throw conflict(plural, address.name, why);
    }
    if (by.subresource !== '') throw notFound(plural, address.name);
    this.#validateNew(address, config);
    const paths = new Set(fieldsOf(config).keys());
    return this.store.create(address, withOwners(config, [{ ...by, paths }]));
  }

  #validateNew(address: Address, body: JsonObject): void {
    const { resource, namespace } = address;
    if (resource.isNamespaced) {
      this.store.get({ resource: known('v1', 'namespaces'), namespace: '', name: namespace });
    }
    validate(address, body);
  }

  /** As it will be, with the account of who owns what. Whatever the writer says of that account is not asked. */
  #tracked({ address, current, after, manager, subresource = '' }: Tracking): JsonObject {
    const [old, now] = [fieldsOf(current ?? {}), fieldsOf(after)];
    const isChanged = ([path, value]: readonly [string, Json]) =>
      JSON.stringify(old.get(path)) !== JSON.stringify(value);
    const owners = afterUpdate(ownershipsOf(current), {
      by: this.#writer(address, { manager, subresource, operation: 'Update' }),
      changed: new Set([...now].filter(isChanged).map(([path]) => path)),
      removed: new Set([...old.keys()].filter((path) => !now.has(path))),
    });
    return withOwners(after, owners);
  }

  #writer(
    { resource: { apiVersion } }: Address,
    { manager, operation, subresource }: Pick<Writer, 'manager' | 'operation' | 'subresource'>,
  ): Writer {
    const time = new Date(this.#clock.now()).toISOString().replace(/\.\d+Z/, 'Z');
    return { manager, operation, subresource, apiVersion, time };
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

function patched(current: SimObject, { kind, body }: Patch): JsonObject {
  const result =
    kind === 'json' && Array.isArray(body) ? jsonPatch(current, body) : mergePatch(current, body);
  if (isObject(result)) return result;
  throw new ApiError(400, 'BadRequest', 'the patch leaves no object');
}

function withOwners(object: JsonObject, owners: readonly Ownership[]): JsonObject {
  const metadata = { ...objectIn(object, 'metadata'), managedFields: entriesOf(owners) };
  return { ...object, metadata };
}

function checkedConfig({ resource, name }: Address, body: Json): JsonObject {
  const config = isObject(body) ? body : {};
  const { apiVersion, kind } = {
    apiVersion: textIn(config, 'apiVersion'),
    kind: textIn(config, 'kind'),
  };
  const metadata = objectIn(config, 'metadata');
  if (apiVersion !== resource.apiVersion || kind !== resource.kind) {
    const group = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
    throw new ApiError(400, 'BadRequest', `invalid object type: ${group}, Kind=${kind}`);
  }
  if (metadata['managedFields'] !== undefined) {
    throw new ApiError(400, 'BadRequest', 'metadata.managedFields must be nil');
  }
  const given = textIn(metadata, 'name') || name;
  if (given === name) return config;
  const message = `the name of the object (${given}) does not match the name on the URL (${name})`;
  throw new ApiError(400, 'BadRequest', message);
}

/** The status has a door of its own, and the rest does not go through it. */
// oxlint-disable-next-line max-params -- of what, what, and by which door
function partOf(resource: Resource, config: JsonObject, subresource: string): JsonObject {
  const { status, ...rest } = config;
  if (subresource !== '') return status === undefined ? {} : { status };
  return resource.hasStatus ? rest : config;
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

type Problem = Cause & { readonly field: string };

function demandValid({ resource, name }: Address, problems: readonly Problem[]): void {
  if (problems.length > 0) throw invalid(`${resource.kind} "${name}"`, problems);
}

/** By a patch; who replaces an object by another uid is told of a precondition. */
function uidProblems({ metadata }: SimObject, after: JsonObject): readonly Problem[] {
  const uid = textIn(objectIn(after, 'metadata'), 'uid');
  if (uid === metadata.uid) return [];
  const message = `Invalid value: "${uid}": field is immutable`;
  return [{ reason: 'FieldValueInvalid', message, field: 'metadata.uid' }];
}

// oxlint-disable-next-line max-params -- what was there and what comes
function providerIdProblems(
  { resource }: Address,
  current: SimObject,
  after: JsonObject,
): readonly Problem[] {
  if (resource.kind !== 'Node') return [];
  const before = textIn(objectIn(current, 'spec'), 'providerID');
  if (before === '' || before === textIn(objectIn(after, 'spec'), 'providerID')) return [];
  const message = 'Forbidden: node updates may not change providerID except from "" to valid';
  return [{ reason: 'FieldValueForbidden', message, field: 'spec.providerID' }];
}
