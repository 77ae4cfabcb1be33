// SPDX-License-Identifier: Apache-2.0
// The verbs of one resource: get, list, create, update, patch, delete, and the subresources.

import { parse as parseYaml } from 'yaml';
import { ApiError, invalidError } from '../storage/api-error.ts';
import { bindPod, evictPod } from '../storage/eviction.ts';
import {
  isObject,
  isTerminating,
  type Json,
  type JsonObject,
  objectField,
  type SimObject,
  textField,
} from '../storage/objects.ts';
import type { Patch, PatchKind, ResourceStorage } from '../storage/resource-storage.ts';
import {
  CERTIFICATE_REQUESTS,
  CORE_EVENTS,
  qualifiedName,
  splitApiVersion,
} from '../storage/resources.ts';
import { patchScale, readScale, replaceScale } from '../storage/scale.ts';
import { parseSelectors } from '../storage/selectors.ts';
import { findUnknownFields } from '../storage/structural-schema.ts';
import type { User } from './authentication.ts';
import { fromCoreEvent } from './core-events.ts';
import type { PagedLists } from './list.ts';
import type { Presentation } from './presentation.ts';
import { parseProtobuf } from './protobuf.ts';
import type { Route } from './routes.ts';

export interface ApiCall {
  readonly storage: ResourceStorage;
  readonly lists: PagedLists;
  readonly route: Route;
  readonly request: Request;
  readonly query: URLSearchParams;
  readonly user: User;
  readonly now: number;
  readonly presentation: Presentation;
}

export interface ApiResult {
  /** A text is sent as plain text. */
  readonly body: object | string;
  readonly status: number;
}

const PATCH_KINDS: Readonly<Record<string, PatchKind>> = {
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/json-patch+json': 'json',
  'application/apply-patch+yaml': 'apply',
};
const CUSTOM_PATCHES =
  'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml';
const PATCH_OPTIONS = 'PatchOptions.meta.k8s.io ""';
const SUCCESS = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' } as const;

export async function serveVerb(call: ApiCall): Promise<ApiResult> {
  const { method } = call.request;
  if (method === 'GET') return ok(read(call));
  if (method === 'POST') return { body: await create(call), status: 201 };
  if (method === 'PUT') return ok(await update(call));
  if (method === 'PATCH') return patch(call);
  if (method === 'DELETE') return ok(await remove(call));
  throw new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method');
}

function ok(body: object | string): ApiResult {
  return { body, status: 200 };
}

function read({ storage, lists, route, query, presentation }: ApiCall): object | string {
  if (route.name === '') return lists.readPage(route, query, presentation);
  const object = storage.store.get(route);
  if (route.subresource === 'scale') return readScale(route.resource, object);
  if (route.subresource === 'log') return 'The simulator runs no containers.\n';
  return presentation.one(object);
}

async function create(call: ApiCall): Promise<object> {
  const { storage, route, now, presentation } = call;
  const body = await readBody(call);
  if (route.subresource === 'eviction') {
    const deleteOptions = objectField(body, 'deleteOptions');
    const isDryRun = isDryRunRequested(call, deleteOptions);
    evictPod(storage, route, { body, isDryRun, now });
    return { ...SUCCESS, code: 201 };
  }
  if (route.subresource === 'binding') {
    const nodeName = textField(objectField(body, 'target'), 'name');
    write(call, () => bindPod(storage, route, { nodeName, now }));
    return { ...SUCCESS, code: 201 };
  }
  const name = textField(objectField(body, 'metadata'), 'name');
  checkNewCustom(call, body);
  const prepared = prepareNew(call, body);
  return presentation.one(
    write(call, () => storage.create({ ...route, name }, prepared, readFieldManager(call))),
  );
}

/** The server sets the user of a certificate request; events of `v1` are stored in the newer form. */
function prepareNew({ route, user }: ApiCall, body: JsonObject): JsonObject {
  if (route.requested === CORE_EVENTS) return fromCoreEvent(body);
  if (route.resource !== CERTIFICATE_REQUESTS) return body;
  const { username, groups } = user;
  return { ...body, spec: { ...objectField(body, 'spec'), username, groups } };
}

async function update(call: ApiCall): Promise<object> {
  const { storage, route, presentation } = call;
  const body = await readBody(call);
  const manager = readFieldManager(call);
  const { subresource } = route;
  if (subresource === 'scale') {
    return write(call, () => replaceScale(storage, route, { scale: body, manager }));
  }
  checkCustomUpdate(call, body);
  const isStatus = subresource === 'status' || subresource === 'approval';
  const verb = isStatus ? 'replaceStatus' : 'replace';
  const next = route.requested === CORE_EVENTS ? fromCoreEvent(body) : body;
  return presentation.one(write(call, () => storage[verb](route, next, manager)));
}

async function patch(call: ApiCall): Promise<ApiResult> {
  const { storage, route, presentation, request } = call;
  const type = (request.headers.get('content-type') ?? '').split(';')[0] ?? '';
  const kind = PATCH_KINDS[type];
  if (kind === undefined) {
    throw new ApiError(415, 'UnsupportedMediaType', `the body of a patch is not ${type}`);
  }
  checkPatchOptions(kind, call);
  const body = inStoredVersion(route, parseBody(await request.text()));
  checkCustomPatch(kind, call, body);
  const force = ['1', 'true'].includes(call.query.get('force') ?? '');
  const change: Patch = { kind, body, manager: readFieldManager(call), force };
  if (route.subresource === 'scale')
    return ok(write(call, () => patchScale(storage, route, change)));
  const verb = ['status', 'approval'].includes(route.subresource) ? 'patchStatus' : 'patch';
  // Only an apply creates an object.
  const isNew = kind === 'apply' && storage.store.find(route) === undefined;
  const patched = write(call, () => storage[verb](route, change));
  return { body: presentation.one(patched), status: isNew ? 201 : 200 };
}

/** An apply names the version that the request addresses. */
function inStoredVersion({ requested, resource }: Route, body: Json): Json {
  const isGiven = isObject(body) && body['apiVersion'] === requested.apiVersion;
  return isGiven ? { ...body, apiVersion: resource.apiVersion } : body;
}

async function remove(call: ApiCall): Promise<object> {
  const { storage, route, query, presentation } = call;
  const options = { ...queryDeleteOptions(query), ...(await readBody(call)) };
  if (route.name !== '') {
    const deleted = write(
      call,
      () => storage.delete(route, options),
      isDryRunRequested(call, options),
    );
    const isGone = route.resource.custom !== undefined && !isTerminating(deleted);
    return isGone ? describeDeleted(route, deleted) : presentation.one(deleted);
  }
  const filter = parseSelectors(route.requested, query);
  const selected = (object: SimObject) => filter(presentation.convert(object));
  write(call, () => storage.deleteCollection(route, selected, options));
  return SUCCESS;
}

/** What a real API server answers for a custom object that is gone at once. */
function describeDeleted({ requested }: Route, { metadata }: SimObject): object {
  const { name, uid } = metadata;
  const { group } = splitApiVersion(requested.apiVersion);
  return { ...SUCCESS, details: { name, group, kind: requested.plural, uid } };
}

/** Refuses what only custom resources refuse; the simulator accepts built-in objects without a kind. */
function checkNewCustom(call: ApiCall, body: JsonObject): void {
  checkCustomBody(call, body);
  const { route } = call;
  const { resourceVersion } = objectField(body, 'metadata');
  if (route.resource.custom === undefined || !resourceVersion) return;
  throw new ApiError(500, '', 'resourceVersion should not be set on objects to be created');
}

function checkCustomUpdate(call: ApiCall, body: JsonObject): void {
  checkCustomBody(call, body);
  const { storage, route } = call;
  const { resourceVersion } = objectField(body, 'metadata');
  if (route.resource.custom === undefined || resourceVersion) return;
  storage.store.get(route);
  throw invalidError(`${qualifiedName(route.resource)} "${route.name}"`, [
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: 0: must be specified for an update',
      field: 'metadata.resourceVersion',
    },
  ]);
}

/** Undefined when unknown fields are allowed or the body has none. */
function strictDecodingError({ route, query }: ApiCall, body: JsonObject): string | undefined {
  const { custom } = route.requested;
  if (custom === undefined || query.get('fieldValidation') !== 'Strict') return undefined;
  const unknown = findUnknownFields(custom.schema, body);
  if (unknown.length === 0) return undefined;
  const fields = unknown.map((field) => `unknown field "${field}"`).join(', ');
  return `strict decoding error: ${fields}`;
}

function checkCustomPatch(kind: PatchKind, call: ApiCall, body: Json): void {
  if (kind === 'strategic' && call.route.resource.custom !== undefined) {
    throw new ApiError(415, 'UnsupportedMediaType', CUSTOM_PATCHES);
  }
  const problem = kind === 'merge' && isObject(body) ? strictDecodingError(call, body) : undefined;
  if (problem === undefined) return;
  const message = `Invalid value: ${JSON.stringify(JSON.stringify(body))}: ${problem}`;
  throw invalidError(` "${call.route.name}"`, [
    { reason: 'FieldValueInvalid', message, field: 'patch' },
  ]);
}

function checkCustomBody(call: ApiCall, body: JsonObject): void {
  const { requested, namespace } = call.route;
  if (requested.custom === undefined) return;
  const [kind, apiVersion] = [textField(body, 'kind'), textField(body, 'apiVersion')];
  const refuse = (message: string) => new ApiError(400, 'BadRequest', message);
  if (kind === '') {
    const text = JSON.stringify(body);
    throw refuse(
      `the object provided is unrecognized (must be of type ${requested.kind}): Object 'Kind' is missing in '${text}'`,
    );
  }
  if (apiVersion !== requested.apiVersion) {
    throw refuse(
      `the API version in the data (${apiVersion}) does not match the expected API version (${requested.apiVersion})`,
    );
  }
  const problem = strictDecodingError(call, body);
  if (problem !== undefined) {
    const { version } = splitApiVersion(apiVersion);
    throw refuse(`${kind} in version "${version}" cannot be handled as a ${kind}: ${problem}`);
  }
  const given = textField(objectField(body, 'metadata'), 'namespace');
  if (given === '' || given === namespace) return;
  throw refuse(
    'the namespace of the provided object does not match the namespace sent on the request',
  );
}

function queryDeleteOptions(query: URLSearchParams): JsonObject {
  const [seconds, policy] = [query.get('gracePeriodSeconds'), query.get('propagationPolicy')];
  return {
    ...(seconds !== null && { gracePeriodSeconds: Number(seconds) }),
    ...(policy !== null && { propagationPolicy: policy }),
  };
}

function isDryRunRequested({ query }: ApiCall, options: JsonObject = {}): boolean {
  const inBody = options['dryRun'];
  return query.get('dryRun') === 'All' || (Array.isArray(inBody) && inBody.includes('All'));
}

function write<T>(call: ApiCall, work: () => T, isDryRun = isDryRunRequested(call)): T {
  return isDryRun ? call.storage.store.dryRun(work) : work();
}

/** The default field manager is the program name from the User-Agent, as in a real API server. */
function readFieldManager({ request, query }: ApiCall): string {
  const program = (request.headers.get('user-agent') ?? '').split('/')[0] ?? '';
  return query.get('fieldManager') || program || 'unknown';
}

function checkPatchOptions(kind: PatchKind, { query }: ApiCall): void {
  if (kind === 'apply' && (query.get('fieldManager') ?? '') === '') {
    throw invalidError(PATCH_OPTIONS, [
      {
        reason: 'FieldValueRequired',
        message: 'Required value: is required for apply patch',
        field: 'fieldManager',
      },
    ]);
  }
  if (kind !== 'apply' && query.has('force')) {
    throw invalidError(PATCH_OPTIONS, [
      {
        reason: 'FieldValueForbidden',
        message: 'Forbidden: may not be specified for non-apply patch',
        field: 'force',
      },
    ]);
  }
}

export async function readBody({ request }: Pick<ApiCall, 'request'>): Promise<JsonObject> {
  const type = request.headers.get('content-type') ?? '';
  if (type.includes('cbor'))
    throw new ApiError(415, 'UnsupportedMediaType', `the body of the request was in ${type}`);
  if (type.includes('protobuf')) return parseProtobuf(new Uint8Array(await request.arrayBuffer()));
  const text = await request.text();
  const body = text === '' ? {} : parseBody(text);
  if (isObject(body)) return body;
  throw new ApiError(400, 'BadRequest', 'the body is not an object');
}

/** JSON, or YAML, which the simulator accepts everywhere. */
function parseBody(text: string): Json {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON is what JSON.parse returns
    return JSON.parse(text) as Json;
  } catch {
    return parseYamlBody(text);
  }
}

function parseYamlBody(text: string): Json {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- plain YAML has the values of JSON
    return parseYaml(text) as Json;
  } catch {
    throw new ApiError(400, 'BadRequest', 'the body is neither JSON nor YAML');
  }
}
