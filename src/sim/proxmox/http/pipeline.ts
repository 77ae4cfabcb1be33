// SPDX-License-Identifier: Apache-2.0
// Handles one request in the order of the Proxmox servers: method, transfer encoding, login, body, path,
// permissions, target host, parameters, work. The order decides which of several errors the client receives.
import type { EndpointFact } from '../../../proxmox/wire-facts/index.ts';
import { ROOT_USER } from '../access/permissions.ts';
import type { Caller } from '../access/sessions.ts';
import { HANDLERS } from '../api/handlers.ts';
import { ApiError, parameterError, permissionError, serverError } from '../api-error.ts';
import type { FaultRule, Faults, FaultTarget } from '../control/faults.ts';
import { Call, type Core, Paged, type Upload } from '../core.ts';
import {
  formatScalar,
  normaliseParams,
  type Params,
  type ParamValue,
  verifyParams,
} from '../schema/verify.ts';
import { SIMULATED_TIMEOUTS_MS } from '../tasks/durations.ts';
import { unescapeBytes } from './decode.ts';
import {
  formatReasonPhrase,
  reasonOnlyResponse,
  SimConnectionError,
  type SimRequest,
  type SimResponse,
} from './messages.ts';
import {
  EarlyResponse,
  type IncomingRequest,
  parseBody,
  parseTarget,
  type RequestBody,
  UPLOAD_PATH,
} from './read-request.ts';
import { type Route, Router } from './router.ts';

const HANG_MS = 600_000;

/** How connections of the API proxy to an offline host fail, and after how long. */
const CONNECT_FAILURES = {
  'no-route': { reason: 'No route to host', afterMs: 3_000 },
  refused: { reason: 'Connection refused', afterMs: 0 },
  'timed-out': { reason: 'Connection timed out', afterMs: 30_000 },
} as const;

export interface PipelineHooks {
  readonly faults: Faults;
  readonly hostDown: (host: string) => void;
  readonly onResponse: (endpoint: string, status: number) => void;
}

export class RequestPipeline {
  readonly #core: Core;
  readonly #hooks: PipelineHooks;
  readonly #router: Router;

  constructor(core: Core, hooks: PipelineHooks) {
    this.#core = core;
    this.#hooks = hooks;
    this.#router = new Router(core.state.version);
  }

  async handle(request: SimRequest): Promise<SimResponse> {
    const entryHost = request.host ?? this.#core.state.hosts.keys().next().value ?? '';
    if (this.#core.state.hosts.get(entryHost)?.online !== true) {
      throw new SimConnectionError('ECONNREFUSED');
    }
    try {
      return await this.#respond(parseTarget(request, entryHost));
    } catch (error) {
      if (error instanceof EarlyResponse) return error.response;
      throw error;
    }
  }

  findEndpoint(method: string, path: string): EndpointFact | undefined {
    return this.#router.find(method, path)?.endpoint;
  }

  /** A call of a command that runs on the host as root: without login, permissions and API servers. */
  async runAsRoot(call: RootCall): Promise<unknown> {
    const { method, path, host } = call;
    const route = this.#router.find(method, path);
    if (route === undefined) throw new ApiError(501, `Method '${method} ${path}' not implemented`);
    const request = { method, target: path };
    const incoming = { request, entryHost: host, format: 'json', path, query: '' } as const;
    const caller = { authUser: ROOT_USER, isToken: false };
    const params = mergeParams(call.params, route.pathParams);
    const { upload } = call;
    const name = `${method} ${route.endpoint.path}`;
    const response = await this.#executeWithFaults(incoming, {
      caller,
      params,
      route,
      host,
      upload,
    });
    this.#hooks.onResponse(name, response.status);
    const body: { readonly data?: unknown } = JSON.parse(response.body);
    return body.data ?? null;
  }

  async #respond(incoming: IncomingRequest): Promise<SimResponse> {
    const caller = await this.#authenticate(incoming);
    const { params, upload } = parseBody(incoming);
    const { method } = incoming.request;
    const route = this.#router.find(method, incoming.path);
    if (route === undefined) {
      const error = new ApiError(501, `Method '${method} ${incoming.path}' not implemented`);
      return this.#formatError(incoming, error);
    }
    const name = `${method} ${route.endpoint.path}`;
    const response = await this.#serve(incoming, { caller, params, upload, route });
    this.#hooks.onResponse(name, response.status);
    return response;
  }

  /** Refusals are delayed and have no body, to slow down guessing. */
  async #authenticate(incoming: IncomingRequest): Promise<Caller | undefined> {
    try {
      return this.#findCaller(incoming);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (isMisreadUpload(incoming)) {
        throw new EarlyResponse(reasonOnlyResponse(400, 'bad request'));
      }
      await this.#sleep(SIMULATED_TIMEOUTS_MS.unauthorized);
      throw new EarlyResponse(reasonOnlyResponse(error.status, error.message));
    }
  }

  #findCaller(incoming: IncomingRequest): Caller | undefined {
    const { request, path } = incoming;
    if (isPublicEndpoint(request.method, path)) return undefined;
    const headers = request.headers ?? {};
    const { sessions } = this.#core;
    const caller = this.#identify(headers);
    const upload = request.method === 'POST' ? UPLOAD_PATH.exec(path) : null;
    if (upload !== null) {
      const required = {
        path: `/storage/${upload[2]}`,
        privileges: ['Datastore.AllocateTemplate'],
      };
      this.#core.access.require(caller.authUser, required);
    } else if (!caller.isToken && request.method !== 'GET') {
      sessions.checkCsrf(caller.authUser, headers['csrfpreventiontoken']);
    }
    return caller;
  }

  /** A ticket takes precedence over a token. */
  #identify(headers: Readonly<Record<string, string>>): Caller {
    const { cookie, authorization } = headers;
    const ticket = authValue(cookie, 'PVEAuthCookie') ?? authValue(authorization, 'PVEAuthCookie');
    if (ticket !== undefined) return this.#core.sessions.authenticateTicket(ticket);
    const token = authValue(authorization, 'PVEAPIToken');
    if (token === undefined) throw new ApiError(401, 'No ticket\n');
    return this.#core.sessions.authenticateToken(token);
  }

  /** Whether the request authenticates with a token; also on endpoints that need no login. */
  #sendsToken({ cookie, authorization }: Readonly<Record<string, string>>): boolean {
    const ticket = authValue(cookie, 'PVEAuthCookie') ?? authValue(authorization, 'PVEAuthCookie');
    return ticket === undefined && authValue(authorization, 'PVEAPIToken') !== undefined;
  }

  async #serve(incoming: IncomingRequest, matched: MatchedRequest): Promise<SimResponse> {
    try {
      const params = mergeParams(matched.params, matched.route.pathParams);
      this.#requirePermission(incoming, matched, params);
      const host = await this.#findHost(incoming, matched.route.endpoint, params);
      return await this.#executeWithFaults(incoming, { ...matched, params, host });
    } catch (error) {
      if (error instanceof ApiError) {
        if (error.status === 401) await this.#sleep(SIMULATED_TIMEOUTS_MS.unauthorized);
        return this.#formatError(incoming, error);
      }
      throw error;
    }
  }

  #requirePermission(incoming: IncomingRequest, matched: MatchedRequest, params: Params): void {
    const { endpoint } = matched.route;
    if (endpoint.allowtoken === 0 && this.#sendsToken(incoming.request.headers ?? {})) {
      throw permissionError(
        `URI '${incoming.path}' not available with API token, need proper ticket.\n`,
      );
    }
    this.#core.access.requireEndpoint(endpoint, matched.caller?.authUser, params);
  }

  /** Finds the host that executes the call. Unknown and offline hosts have their own errors. */
  async #findHost(
    incoming: IncomingRequest,
    endpoint: EndpointFact,
    params: Params,
  ): Promise<string> {
    const isUpload = endpoint.path.endsWith('/upload');
    if (endpoint.proxyto === undefined && !isUpload) return incoming.entryHost;
    const name = formatScalar(params[endpoint.proxyto ?? 'node'] ?? '');
    if (name === 'localhost' || name === incoming.entryHost) return incoming.entryHost;
    const host = this.#core.state.hosts.get(name);
    if (host === undefined) {
      throw serverError(
        `hostname lookup '${name}' failed - failed to get address info for: ${name}: Name or service not known`,
      );
    }
    if (!host.online) {
      const { reason, afterMs } = CONNECT_FAILURES[host.whenOff];
      await this.#sleep(afterMs);
      throw new EarlyResponse(reasonOnlyResponse(595, reason));
    }
    return name;
  }

  async #executeWithFaults(incoming: IncomingRequest, routed: RoutedRequest): Promise<SimResponse> {
    const { faults } = this.#hooks;
    const vmid = routed.params['vmid'];
    const target: FaultTarget = {
      endpoint: `${incoming.request.method} ${routed.route.endpoint.path}`,
      host: routed.host,
      vmId: vmid === undefined ? undefined : Number(vmid),
    };
    await this.#injectBefore(
      faults.take(['error', 'delay', 'hang', 'host-down'], target),
      routed.host,
    );
    this.#requireOnline(incoming, routed.host);
    const after = faults.take(['response-lost', 'response-delayed', 'host-down-after'], target);
    const response = await this.#execute(incoming, routed);
    await this.#injectAfter(after, routed.host);
    this.#requireOnline(incoming, routed.host);
    return response;
  }

  async #injectBefore(fault: FaultRule | undefined, host: string): Promise<void> {
    if (fault === undefined) return;
    if (fault.kind === 'host-down') return this.#hooks.hostDown(host);
    if (fault.kind === 'error') {
      const status = fault.status ?? 500;
      if (status >= 595)
        throw new EarlyResponse(reasonOnlyResponse(status, fault.message ?? 'Connection refused'));
      throw new ApiError(status, `${fault.message ?? 'simulated fault'}\n`);
    }
    const isHang = fault.kind === 'hang';
    await this.#sleep(fault.delayMs ?? (isHang ? HANG_MS : 1000));
    if (isHang) throw new SimConnectionError('ECONNRESET');
  }

  async #injectAfter(fault: FaultRule | undefined, host: string): Promise<void> {
    if (fault?.kind === 'host-down-after') this.#hooks.hostDown(host);
    if (fault?.kind === 'response-delayed') await this.#sleep(fault.delayMs ?? 1000);
    if (fault?.kind === 'response-lost') throw new SimConnectionError('ECONNRESET');
  }

  #requireOnline(incoming: IncomingRequest, host: string): void {
    const { hosts } = this.#core.state;
    if (hosts.get(incoming.entryHost)?.online !== true) throw new SimConnectionError('ECONNRESET');
    if (hosts.get(host)?.online !== true)
      throw new EarlyResponse(reasonOnlyResponse(595, 'No route to host'));
  }

  async #execute(incoming: IncomingRequest, routed: RoutedRequest): Promise<SimResponse> {
    const { endpoint } = routed.route;
    const params = normaliseParams(endpoint, routed.params);
    const errors = verifyParams(endpoint, params, this.#core.state.version);
    if (Object.keys(errors).length > 0) throw parameterError(errors);
    const name = `${endpoint.method} ${endpoint.path}`;
    const handler = HANDLERS[name];
    if (handler === undefined) throw new ApiError(501, `${name} is not simulated\n`);
    const call = new Call({
      core: this.#core,
      endpoint,
      authUser: routed.caller?.authUser ?? '',
      host: routed.host,
      entryHost: incoming.entryHost,
      params,
      upload: routed.upload,
    });
    const result = await this.#withProxyTimeout(handler(call));
    const paged = result instanceof Paged ? { total: result.total } : {};
    const data = (result instanceof Paged ? result.data : result) ?? null;
    const success = incoming.format === 'extjs' ? { success: 1 } : {};
    return envelope(200, 'OK', { data, ...success, ...paged });
  }

  /** The API proxy gives up after 30 s; the work continues. */
  async #withProxyTimeout(result: unknown): Promise<unknown> {
    if (!(result instanceof Promise)) return result;
    const done = new AbortController();
    const finished = result.finally(() => done.abort());
    const late = this.#core.state.clock
      .sleep(SIMULATED_TIMEOUTS_MS.proxy / this.#core.state.speed, { signal: done.signal })
      .then(
        () => Promise.reject(new EarlyResponse(reasonOnlyResponse(596, 'Connection timed out'))),
        () => finished,
      );
    finished.catch(() => undefined);
    return await Promise.race([finished, late]);
  }

  #formatError(incoming: IncomingRequest, error: ApiError): SimResponse {
    const { status, message, errors } = error;
    const body = { data: null, ...(errors === undefined ? {} : { errors }) };
    if (incoming.format === 'extjs') {
      return envelope(200, 'OK', { ...body, success: 0, status, message });
    }
    return envelope(status, formatReasonPhrase(status, message), { ...body, message });
  }

  async #sleep(ms: number): Promise<void> {
    await this.#core.state.clock.sleep(ms / this.#core.state.speed);
  }
}

export interface RootCall {
  readonly method: string;
  readonly path: string;
  readonly params: Params;
  readonly host: string;
  readonly upload: Upload | undefined;
}

interface MatchedRequest extends RequestBody {
  readonly caller: Caller | undefined;
  readonly route: Route;
}

interface RoutedRequest extends MatchedRequest {
  readonly host: string;
}

function envelope(status: number, reason: string, body: unknown): SimResponse {
  const headers = { 'content-type': 'application/json;charset=UTF-8' };
  return { status, reason, headers, body: JSON.stringify(body) };
}

/** Endpoints that need no login. */
function isPublicEndpoint(method: string, path: string): boolean {
  if (path === '/access/ticket') return method === 'GET' || method === 'POST';
  return path === '/access/domains' && method === 'GET';
}

/** `NAME=value` or `NAME value` in a cookie or authorization header. */
function authValue(header: string | undefined, name: string): string | undefined {
  const match = new RegExp(`(?:^|[\\s;])${name}[= ]([^;]*)`).exec(header ?? '');
  return match === null ? undefined : unescapeBytes((match[1] ?? '').trim());
}

function mergeParams(given: Params, path: Readonly<Record<string, string>>): Params {
  const merged: Record<string, ParamValue> = { ...path };
  for (const [name, value] of Object.entries(given)) {
    const inPath = path[name];
    if (inPath !== undefined && inPath !== formatScalar(value)) {
      throw parameterError({
        [name]: 'duplicate parameter (already defined in URI) with conflicting values!',
      });
    }
    merged[name] = value;
  }
  return merged;
}

/** On a connection that was used before, Proxmox reads the body of a refused upload as the next request. */
function isMisreadUpload({ request, path }: IncomingRequest): boolean {
  if (request.isConnectionReused !== true || request.method !== 'POST') return false;
  return UPLOAD_PATH.test(path) && Buffer.from(request.body ?? '').includes('\n');
}
