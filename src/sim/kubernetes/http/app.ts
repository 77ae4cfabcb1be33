// SPDX-License-Identifier: Apache-2.0
import { type Context, Hono } from 'hono';
import type { Clock } from '../../../ports/clock.ts';
import type { FaultKind, Faults } from '../faults.ts';
import { ApiError, invalidError } from '../storage/api-error.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  objectField,
  textField,
} from '../storage/objects.ts';
import type { PatchKind, ResourceStorage } from '../storage/resource-storage.ts';
import type { PagedLists } from './list.ts';
import { parseRoute, type Route } from './routes.ts';
import type { Watches } from './watch.ts';

export interface AppOptions {
  readonly storage: ResourceStorage;
  readonly lists: PagedLists;
  readonly watches: Watches;
  readonly faults: Faults;
  readonly clock: Clock;
  /** Called with every request before it is handled. */
  readonly onRequest: (verb: string, path: string) => void;
}

const PATCH_KINDS: Readonly<Record<string, PatchKind>> = {
  'application/merge-patch+json': 'merge',
  // A real server merges lists by key. No client of the simulator depends on that.
  'application/strategic-merge-patch+json': 'merge',
  'application/json-patch+json': 'json',
  'application/apply-patch+yaml': 'apply',
};

const PATCH_OPTIONS = 'PatchOptions.meta.k8s.io ""';

export function createApp(options: AppOptions): Hono {
  const app = new Hono();
  app.get('/version', (context) =>
    context.json({ major: '1', minor: '36', gitVersion: 'v1.36.2' }),
  );
  app.get('/readyz', (context) => context.text('ok'));
  app.all('*', (context) => handleRequest(options, context));
  app.onError((error) => {
    const apiError =
      error instanceof ApiError ? error : new ApiError(500, 'InternalError', error.message);
    return jsonResponse(apiError.toStatus(), apiError.status);
  });
  return app;
}

async function handleRequest(options: AppOptions, context: Context): Promise<Response> {
  const url = new URL(context.req.url);
  const isWatch = ['1', 'true'].includes(url.searchParams.get('watch') ?? '');
  const verb = isWatch ? 'WATCH' : context.req.method;
  options.onRequest(verb, url.pathname);
  const fault = options.faults.takeMatching(verb, url.pathname);
  if (fault !== undefined) return respondWithFault(options, context, fault);
  return isWatch ? serveWatch(options, url) : serveRequest(options, context, url);
}

async function respondWithFault(
  options: AppOptions,
  context: Context,
  fault: FaultKind,
): Promise<Response> {
  switch (fault.kind) {
    case 'status': {
      const reason = fault.reason ?? 'InternalError';
      const apiError = new ApiError(fault.status, reason, `injected fault: ${fault.status}`);
      return jsonResponse(apiError.toStatus(), apiError.status);
    }
    case 'hang':
      return new Promise<Response>(() => undefined);
    case 'disconnect':
      return brokenResponse();
    case 'disconnect-after':
      await serveRequest(options, context, new URL(context.req.url));
      return brokenResponse();
    case 'watch-line':
      return serveWatch(options, new URL(context.req.url), fault.line);
  }
}

/** Sends the response head; reading the body fails. */
function brokenResponse(): Response {
  const body = new ReadableStream({
    start: (controller) => controller.error(new Error('the connection was cut')),
  });
  return new Response(body, { headers: { 'content-type': 'application/json' } });
}

function serveWatch(options: AppOptions, url: URL, onlyLine?: string): Response {
  const { resource, namespace } = parseRoute(url.pathname);
  const body = options.watches.start({
    store: options.storage.store,
    clock: options.clock,
    resource,
    namespace,
    query: url.searchParams,
    ...(onlyLine !== undefined && { onlyLine }),
  });
  return new Response(body, { headers: { 'content-type': 'application/json' } });
}

async function serveRequest(options: AppOptions, context: Context, url: URL): Promise<Response> {
  const route = parseRoute(url.pathname);
  const { storage, lists } = options;
  switch (context.req.method) {
    case 'GET':
      return jsonResponse(
        route.name === ''
          ? lists.readPage(route.resource, route.namespace, url.searchParams)
          : storage.store.get(route),
      );
    case 'POST':
      return jsonResponse(await createObject(storage, route, context), 201);
    case 'PUT': {
      const replace = route.subresource === 'status' ? 'replaceStatus' : 'replace';
      return jsonResponse(
        storage[replace](route, await readBody(context), readFieldManager(context)),
      );
    }
    case 'PATCH':
      return jsonResponse(await patchObject(storage, route, context));
    case 'DELETE': {
      const preconditions = objectField(await readBody(context), 'preconditions');
      return jsonResponse(storage.delete(route, textField(preconditions, 'uid')));
    }
    default:
      throw new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method');
  }
}

async function createObject(
  storage: ResourceStorage,
  route: Route,
  context: Context,
): Promise<object> {
  const body = await readBody(context);
  if (route.subresource === 'eviction') {
    storage.evict(route, body);
    return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
  }
  const metadata = objectField(body, 'metadata');
  const name = textField(metadata, 'name');
  return storage.create({ ...route, name }, body, readFieldManager(context));
}

/** The default field manager is the program name from the User-Agent, as in a real API server. */
function readFieldManager({ req }: Context): string {
  const program = (req.header('user-agent') ?? '').split('/')[0] ?? '';
  return req.query('fieldManager') || program || 'unknown';
}

async function patchObject(
  storage: ResourceStorage,
  route: Route,
  context: Context,
): Promise<object> {
  const type = (context.req.header('content-type') ?? '').split(';')[0] ?? '';
  const kind = PATCH_KINDS[type];
  if (kind === undefined) {
    throw new ApiError(415, 'UnsupportedMediaType', `the body of a patch is not ${type}`);
  }
  checkPatchOptions(kind, context);
  const body = parseJson(await context.req.text());
  const change = route.subresource === 'status' ? 'patchStatus' : 'patch';
  const force = ['1', 'true'].includes(context.req.query('force') ?? '');
  return storage[change](route, { kind, body, manager: readFieldManager(context), force });
}

function checkPatchOptions(kind: PatchKind, { req }: Context): void {
  if (kind === 'apply' && (req.query('fieldManager') ?? '') === '') {
    throw invalidError(PATCH_OPTIONS, [
      {
        reason: 'FieldValueRequired',
        message: 'Required value: is required for apply patch',
        field: 'fieldManager',
      },
    ]);
  }
  if (kind !== 'apply' && req.query('force') !== undefined) {
    throw invalidError(PATCH_OPTIONS, [
      {
        reason: 'FieldValueForbidden',
        message: 'Forbidden: may not be specified for non-apply patch',
        field: 'force',
      },
    ]);
  }
}

async function readBody(context: Context): Promise<JsonObject> {
  const text = await context.req.text();
  const body = text === '' ? {} : parseJson(text);
  if (isObject(body)) return body;
  throw new ApiError(400, 'BadRequest', 'the body is not an object');
}

function parseJson(text: string): Json {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON is what JSON.parse returns
    return JSON.parse(text) as Json;
  } catch {
    throw new ApiError(400, 'BadRequest', 'the body is not JSON');
  }
}

function jsonResponse(body: object, status = 200): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json' },
  });
}
