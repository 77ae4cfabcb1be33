// SPDX-License-Identifier: Apache-2.0
// One request: faults, authentication, documents, then the verbs of the addressed resource.
import type { Clock } from '../../../ports/clock.ts';
import type { FaultKind, Faults } from '../faults.ts';
import { ApiError, PlainError } from '../storage/api-error.ts';
import type { ResourceStorage } from '../storage/resource-storage.ts';
import type { AccessRules } from './access.ts';
import { authenticate, authorize, type User } from './authentication.ts';
import { readDiscovery } from './discovery.ts';
import type { PagedLists } from './list.ts';
import { readOpenApi } from './openapi.ts';
import { choosePresentation } from './presentation.ts';
import { parseRoute } from './routes.ts';
import { type ApiCall, readBody, serveVerb } from './verbs.ts';
import type { Watches } from './watch.ts';

export interface AppOptions {
  readonly storage: ResourceStorage;
  readonly lists: PagedLists;
  readonly watches: Watches;
  readonly faults: Faults;
  readonly access: AccessRules;
  readonly clock: Clock;
  /** Absent: every user is an administrator. */
  readonly adminToken?: string;
  /** What a joining node reads; absent: the server is not meant to be joined. */
  readonly joinInfo?: JoinInfo;
  /** Called with every request before it is handled. */
  readonly onRequest: (verb: string, path: string) => void;
}

export interface JoinInfo {
  /** `host:port`. */
  readonly address: string;
  readonly caPem: string;
}

/** What is known about the connection of a request. */
export interface Peer {
  /** From the verified client certificate. */
  readonly certificateUser?: User;
}

const VERSION = {
  major: '1',
  minor: '36',
  gitVersion: 'v1.36.2',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: '',
  platform: 'linux/amd64',
};

export async function handleRequest(
  options: AppOptions,
  request: Request,
  peer: Peer = {},
): Promise<Response> {
  try {
    return await handleOrThrow(options, request, peer);
  } catch (error) {
    const apiError =
      error instanceof ApiError ? error : new ApiError(500, 'InternalError', String(error));
    const { status } = apiError;
    return apiError instanceof PlainError
      ? textResponse(`${apiError.message}\n`, status)
      : jsonResponse(apiError.toStatus(), status);
  }
}

async function handleOrThrow(options: AppOptions, request: Request, peer: Peer): Promise<Response> {
  const url = new URL(request.url);
  const isWatch = ['1', 'true'].includes(url.searchParams.get('watch') ?? '');
  const verb = isWatch ? 'WATCH' : request.method;
  options.onRequest(verb, url.pathname);
  const fault = options.faults.takeMatching(verb, url.pathname);
  const serve = () => serveRequest(options, { request, url, isWatch, peer });
  if (fault === undefined) return serve();
  return respondWithFault(fault, {
    serve,
    watch: (line) => serveWatch(options, { request, url, onlyLine: line }),
  });
}

interface FaultyResponses {
  readonly serve: () => Promise<Response>;
  readonly watch: (line: string) => Response;
}

async function respondWithFault(
  fault: FaultKind,
  { serve, watch }: FaultyResponses,
): Promise<Response> {
  switch (fault.kind) {
    case 'status': {
      const reason = fault.reason ?? 'InternalError';
      throw new ApiError(fault.status, reason, `injected fault: ${fault.status}`);
    }
    case 'hang':
      return new Promise<Response>(() => undefined);
    case 'disconnect':
      return brokenResponse();
    case 'disconnect-after':
      await serve();
      return brokenResponse();
    case 'watch-line':
      return watch(fault.line);
  }
}

/** Sends the response head; reading the body fails. */
function brokenResponse(): Response {
  const body = new ReadableStream({
    start: (controller) => controller.error(new Error('the connection was cut')),
  });
  return new Response(body, { headers: { 'content-type': 'application/json' } });
}

interface IncomingRequest {
  readonly request: Request;
  readonly url: URL;
  readonly isWatch: boolean;
  readonly peer: Peer;
}

async function serveRequest(
  options: AppOptions,
  { request, url, isWatch, peer }: IncomingRequest,
): Promise<Response> {
  const { storage, clock, adminToken } = options;
  const user = authenticate(request.headers.get('authorization') ?? '', {
    store: storage.store,
    now: clock.now(),
    ...(adminToken !== undefined && { adminToken }),
    ...peer,
  });
  authorize(user, request.method, url.pathname);
  if (request.method === 'POST') {
    const review = await options.access.review(url.pathname, user, () => readBody({ request }));
    if (review !== undefined) return jsonResponse(review, 201);
  }
  options.access.check(user.username, { method: request.method, isWatch }, url.pathname);
  const document = request.method === 'GET' ? serveDocument(options, request, url) : undefined;
  if (document !== undefined) return document;
  if (isWatch) return serveWatch(options, { request, url });
  const { body, status } = await serveVerb(createCall(options, request, { url, user }));
  return typeof body === 'string' ? textResponse(body, status) : jsonResponse(body, status);
}

/** Documents that are no objects; undefined for every other path. */
function serveDocument(options: AppOptions, request: Request, url: URL): Response | undefined {
  const { pathname } = url;
  if (pathname === '/version') return jsonResponse(VERSION);
  if (['/readyz', '/livez', '/healthz'].includes(pathname)) return new Response('ok');
  const discovery = readDiscovery(
    pathname,
    request.headers.get('accept') ?? '',
    options.storage.resources.served,
  );
  if (discovery !== undefined) return jsonResponse(discovery.body, 200, discovery.contentType);
  const openApi = readOpenApi(pathname, options.storage.resources.served);
  if (openApi !== undefined) return jsonResponse(openApi);
  if (pathname === '/openapi/v2') return new Response(EMPTY_OPENAPI_V2);
  const { joinInfo } = options;
  if (joinInfo === undefined) return undefined;
  // The supervisor of k3s and RKE2, on the same port as the API server.
  if (pathname === '/cacerts') return new Response(joinInfo.caPem);
  const isSupervisor = /^\/v1-(k3s|rke2)\/apiservers$/.test(pathname);
  return isSupervisor ? jsonResponse([joinInfo.address]) : undefined;
}

/**
 * `swagger: "2.0"` in protobuf. kubectl reads it for kinds that the OpenAPI v3 documents do not have, and then says that
 * there is no such kind.
 */
const EMPTY_OPENAPI_V2 = new Uint8Array([0x0a, 0x03, 0x32, 0x2e, 0x30]);

interface WatchRequest {
  readonly request: Request;
  readonly url: URL;
  readonly onlyLine?: string;
}

function serveWatch(options: AppOptions, { request, url, onlyLine }: WatchRequest): Response {
  const { storage, clock } = options;
  const { resource, requested, namespace, name } = parseRoute(url.pathname, storage.resources);
  const accept = request.headers.get('accept') ?? '';
  const body = options.watches.start({
    store: storage.store,
    clock,
    resource,
    requested,
    namespace,
    name,
    presentation: choosePresentation({
      resource: requested,
      accept,
      query: url.searchParams,
      now: clock.now(),
    }),
    query: url.searchParams,
    ...(onlyLine !== undefined && { onlyLine }),
  });
  return new Response(body, { headers: { 'content-type': 'application/json' } });
}

function createCall(
  { storage, lists, clock }: AppOptions,
  request: Request,
  { url, user }: { readonly url: URL; readonly user: User },
): ApiCall {
  const route = parseRoute(url.pathname, storage.resources);
  const accept = request.headers.get('accept') ?? '';
  const now = clock.now();
  const query = url.searchParams;
  return {
    storage,
    lists,
    route,
    request,
    query,
    user,
    now,
    presentation: choosePresentation({ resource: route.requested, accept, query, now }),
  };
}

function textResponse(body: string, status: number): Response {
  return new Response(body, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });
}

function jsonResponse(body: object, status = 200, contentType = 'application/json'): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'content-type': contentType } });
}
