// SPDX-License-Identifier: Apache-2.0
import { type Context, Hono } from 'hono';
import type { Clock } from '../../../ports/clock.ts';
import type { FaultKind, Faults } from '../faults.ts';
import { ApiError, invalid } from '../world/api-error.ts';
import { isObject, type Json, type JsonObject, objectIn, textIn } from '../world/objects.ts';
import type { PatchKind, World } from '../world/world.ts';
import type { Lists } from './list.ts';
import { type Route, routeOf } from './routes.ts';
import type { Watches } from './watch.ts';

export interface AppParts {
  readonly world: World;
  readonly lists: Lists;
  readonly watches: Watches;
  readonly faults: Faults;
  readonly clock: Clock;
  /** Sees every request, as `VERB path`. */
  readonly onRequest: (verb: string, path: string) => void;
}

const PATCH_KINDS: Readonly<Record<string, PatchKind>> = {
  'application/merge-patch+json': 'merge',
  // Lists would be merged by key; nobody here depends on that.
  'application/strategic-merge-patch+json': 'merge',
  'application/json-patch+json': 'json',
  'application/apply-patch+yaml': 'apply',
};

const PATCH_OPTIONS = 'PatchOptions.meta.k8s.io ""';

export function createApp(parts: AppParts): Hono {
  const app = new Hono();
  app.get('/version', (context) =>
    context.json({ major: '1', minor: '36', gitVersion: 'v1.36.2' }),
  );
  app.get('/readyz', (context) => context.text('ok'));
  app.all('*', (context) => answer(parts, context));
  app.onError((error, context) => {
    const refusal =
      error instanceof ApiError ? error : new ApiError(500, 'InternalError', error.message);
    return json(context, refusal.toStatus(), refusal.status);
  });
  return app;
}

async function answer(parts: AppParts, context: Context): Promise<Response> {
  const url = new URL(context.req.url);
  const isWatch = ['1', 'true'].includes(url.searchParams.get('watch') ?? '');
  const verb = isWatch ? 'WATCH' : context.req.method;
  parts.onRequest(verb, url.pathname);
  const fault = parts.faults.take(verb, url.pathname);
  if (fault !== undefined) return faulty(parts, context, fault);
  return isWatch ? watch(parts, url) : serve(parts, context, url);
}

// oxlint-disable-next-line max-params -- who answers, whom, and how it goes wrong
async function faulty(parts: AppParts, context: Context, fault: FaultKind): Promise<Response> {
  switch (fault.kind) {
    case 'status': {
      const reason = fault.reason ?? 'InternalError';
      const refusal = new ApiError(fault.status, reason, `it was told to answer ${fault.status}`);
      return json(context, refusal.toStatus(), refusal.status);
    }
    case 'hang':
      return new Promise<Response>(() => undefined);
    case 'cut':
      return cutOff();
    case 'cut-after':
      await serve(parts, context, new URL(context.req.url));
      return cutOff();
    case 'line':
      return watch(parts, new URL(context.req.url), fault.line);
  }
}

/** The head is sent and nothing more: who reads the body finds the connection broken. */
function cutOff(): Response {
  const body = new ReadableStream({
    start: (controller) => controller.error(new Error('the connection was cut')),
  });
  return new Response(body, { headers: { 'content-type': 'application/json' } });
}

function watch(parts: AppParts, url: URL, lastWords?: string): Response {
  const { resource, namespace } = routeOf(url.pathname);
  const body = parts.watches.start({
    store: parts.world.store,
    clock: parts.clock,
    resource,
    namespace,
    query: url.searchParams,
    ...(lastWords !== undefined && { lastWords }),
  });
  return new Response(body, { headers: { 'content-type': 'application/json' } });
}

// oxlint-disable-next-line max-params -- who answers whom, about what
async function serve(parts: AppParts, context: Context, url: URL): Promise<Response> {
  const route = routeOf(url.pathname);
  const { world, lists } = parts;
  switch (context.req.method) {
    case 'GET':
      return json(
        context,
        route.name === ''
          ? lists.page(route.resource, route.namespace, url.searchParams)
          : world.store.get(route),
      );
    case 'POST':
      return json(context, await create(world, route, context), 201);
    case 'PUT': {
      const replace = route.subresource === 'status' ? 'replaceStatus' : 'replace';
      return json(context, world[replace](route, await bodyOf(context), managerOf(context)));
    }
    case 'PATCH':
      return json(context, await patch(world, route, context));
    case 'DELETE': {
      const preconditions = objectIn(await bodyOf(context), 'preconditions');
      return json(context, world.delete(route, textIn(preconditions, 'uid')));
    }
    default:
      throw new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method');
  }
}

// oxlint-disable-next-line max-params -- who, about what, with what
async function create(world: World, route: Route, context: Context): Promise<object> {
  const body = await bodyOf(context);
  if (route.subresource === 'eviction') {
    world.evict(route, body);
    return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
  }
  const metadata = objectIn(body, 'metadata');
  const name = textIn(metadata, 'name');
  return world.create({ ...route, name }, body, managerOf(context));
}

/** Who names no manager is called by the name of his program. */
function managerOf({ req }: Context): string {
  const program = (req.header('user-agent') ?? '').split('/')[0] ?? '';
  return req.query('fieldManager') || program || 'unknown';
}

// oxlint-disable-next-line max-params -- who, about what, with what
async function patch(world: World, route: Route, context: Context): Promise<object> {
  const type = (context.req.header('content-type') ?? '').split(';')[0] ?? '';
  const kind = PATCH_KINDS[type];
  if (kind === undefined) {
    throw new ApiError(415, 'UnsupportedMediaType', `the body of a patch is not ${type}`);
  }
  demandOptions(kind, context);
  const body = parse(await context.req.text());
  const change = route.subresource === 'status' ? 'patchStatus' : 'patch';
  const force = ['1', 'true'].includes(context.req.query('force') ?? '');
  return world[change](route, { kind, body, manager: managerOf(context), force });
}

function demandOptions(kind: PatchKind, { req }: Context): void {
  if (kind === 'apply' && (req.query('fieldManager') ?? '') === '') {
    throw invalid(PATCH_OPTIONS, [
      {
        reason: 'FieldValueRequired',
        message: 'Required value: is required for apply patch',
        field: 'fieldManager',
      },
    ]);
  }
  if (kind !== 'apply' && req.query('force') !== undefined) {
    throw invalid(PATCH_OPTIONS, [
      {
        reason: 'FieldValueForbidden',
        message: 'Forbidden: may not be specified for non-apply patch',
        field: 'force',
      },
    ]);
  }
}

async function bodyOf(context: Context): Promise<JsonObject> {
  const text = await context.req.text();
  const body = text === '' ? {} : parse(text);
  if (isObject(body)) return body;
  throw new ApiError(400, 'BadRequest', 'the body is not an object');
}

function parse(text: string): Json {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON is what JSON.parse returns
    return JSON.parse(text) as Json;
  } catch {
    throw new ApiError(400, 'BadRequest', 'the body is not JSON');
  }
}

// oxlint-disable-next-line max-params -- as the framework has it
function json(_context: Context, body: object, status = 200): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/json' },
  });
}
