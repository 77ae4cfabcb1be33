// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import {
  Bug,
  Cancelled,
  deserializeError,
  PvescalerError,
  serializeError,
  TimedOut,
} from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import type { SizedBody, Transport, TransportRequest } from '../ports/transport.ts';
import { CallDeadline } from './call-deadline.ts';
import { type Endpoint, Endpoints, type ReportedHost } from './endpoints.ts';
import { explainRefusal, isUnexplainedRefusal, type NeededPrivilege } from './explain-refusal.ts';
import { rejectAsNotSent, retryWithBackoff } from './retry.ts';
import { type Credentials, createSession, type Session } from './session.ts';
import { type Facts, translateErrorResponse } from './translate-errors.ts';
import {
  asBoolean,
  asNumber,
  asObject,
  asObjects,
  asText,
  encodeForm,
  findSecretValues,
  type Parameters,
  parseJson,
} from './wire-values.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Relative to /api2/json; segments are URL-encoded. */
  readonly path: string;
  /** For error messages: `create VM 160 on pve1`. */
  readonly operation: string;
  readonly query?: Parameters;
  readonly form?: Parameters;
  readonly upload?: { readonly contentType: string; readonly body: SizedBody };
  /** Idempotent. Only such a request is sent again after its response was lost. Default: true for GET. */
  readonly repeatable?: boolean;
  /** The Proxmox host that the request is about. */
  readonly host?: string;
  /** Privileges that Proxmox does not name when it refuses the request. */
  readonly needs?: readonly NeededPrivilege[];
  /** Another host would have to copy the body to `host` by ssh: send it to the host's own address if possible. */
  readonly isForHostItself?: boolean;
  readonly facts?: Facts;
  /** Limit for the whole call: queue, login and all attempts. Default: only each attempt is limited. */
  readonly timeoutMs?: number;
  /** The request may take seconds, because Proxmox waits for the guest agent. */
  readonly waitsForGuest?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface ApiResult {
  readonly data: unknown;
  /** Number of entries of a paged list. */
  readonly total: number | undefined;
  /** The endpoint that responded. */
  readonly endpoint: Endpoint;
}

export interface ApiLimits {
  /** Per endpoint. */
  readonly maxConcurrentRequests: number;
  /** Limit for one attempt, response body included; an upload gets more time for its size. */
  readonly requestTimeoutMs: number;
  /** How long a failed endpoint is tried last. */
  readonly endpointCooldownMs: number;
  /** For repeatable requests, including the first attempt. */
  readonly maxAttempts: number;
}

export const DEFAULT_LIMITS: ApiLimits = {
  maxConcurrentRequests: 6,
  // A host waits up to 30 s for another host, then responds with 596. The timeout is longer, to receive that response.
  requestTimeoutMs: 35_000,
  endpointCooldownMs: 30_000,
  maxAttempts: 4,
};

/** Slower than any network that can run VMs from shared storage. */
const MIN_UPLOAD_BYTES_PER_MS = 2 ** 20 / 1_000;
const MAX_UPLOAD_MS = 10 * 60 * 1_000;

const HOSTS_MAX_AGE_MS = 5 * 60_000;
const HOSTS_TIMEOUT_MS = 10_000;

export interface ApiClientOptions {
  readonly endpoints: readonly string[];
  readonly credentials: Credentials;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits?: Partial<ApiLimits>;
}

/** Sends API requests: chooses the endpoint, authenticates, retries, and translates errors. */
export class ApiClient {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limits: ApiLimits;
  readonly #endpoints: Endpoints;
  readonly #session: Session;
  readonly #closed = new AbortController();
  /** When the hosts' addresses were last read, on the monotonic clock, and why they could not be. */
  #hostsReadAt = Number.NEGATIVE_INFINITY;
  #hostsError: PvescalerError | undefined;
  /** Why a host could not be contacted at its own address. */
  readonly #directErrors = new Map<string, string>();

  constructor(options: ApiClientOptions) {
    this.#transport = options.transport;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#endpoints = new Endpoints(options.endpoints, {
      clock: options.clock,
      cooldownMs: this.#limits.endpointCooldownMs,
      maxConcurrentRequests: this.#limits.maxConcurrentRequests,
    });
    this.#session = createSession(options.credentials, {
      clock: options.clock,
      login: (form) => this.#logIn(form),
    });
  }

  /** `user@realm` of the credentials. */
  get user(): string {
    return this.#session.user;
  }

  async requestData(request: ApiRequest): Promise<unknown> {
    return (await this.request(request)).data;
  }

  async request(request: ApiRequest): Promise<ApiResult> {
    const signal = this.#abortOnClose(request.signal);
    if (signal.aborted)
      throw new Cancelled(
        'CANCELLED',
        `${request.operation}: the caller aborted the request or the client is closed`,
      );
    const deadline = new CallDeadline(request, this.#clock);
    const repeatable = request.repeatable ?? request.method === 'GET';
    const call = { ...request, signal, repeatable, deadline };
    try {
      if (request.isForHostItself === true) return await this.#sendToHost(call);
      return await (repeatable ? this.#sendWithRetries(call) : this.#sendAuthenticated(call));
    } catch (error) {
      const { needs } = call;
      if (needs !== undefined && isUnexplainedRefusal(error)) {
        const requestData = (read: ApiRequest) => this.requestData(read);
        throw await explainRefusal(error, { ...call, needs, requestData });
      }
      throw signal.aborted ? error : deadline.translate(error);
    } finally {
      deadline.stop();
    }
  }

  #sendWithRetries(call: Call): Promise<ApiResult> {
    return retryWithBackoff(() => this.#sendAuthenticated(call), {
      clock: this.#clock,
      random: this.#random,
      signal: call.deadline.limit(call.signal),
      maxAttempts: this.#limits.maxAttempts,
      initialBackoffMs: 400,
      maxBackoffMs: 5_000,
      isTransient: (error) => !call.deadline.isOver && isTransient(error),
    });
  }

  /** Sends to the host's own address. If that cannot be reached or verified, any endpoint passes the request on. */
  async #sendToHost(call: Call): Promise<ApiResult> {
    const { host = '' } = call;
    await rejectAsNotSent(this.#learnHosts(host, call.signal));
    const result = await this.#sendDirectly(call, host);
    if (result !== undefined) return result;
    return this.#sendAuthenticated(call).catch((error: unknown) => {
      const reason = this.#hostsError?.message ?? this.#directErrors.get(host);
      throw reason === undefined ? error : withHostUnreachable(error, { host, reason });
    });
  }

  /** Undefined, and nothing sent, if there is no other address than the endpoints or if it does not answer. */
  async #sendDirectly(call: Call, host: string): Promise<ApiResult | undefined> {
    const endpoint = this.#endpoints.isOnHost(host) ? undefined : this.#endpoints.reportedFor(host);
    if (endpoint === undefined) return undefined;
    try {
      const result = await this.#sendAuthenticated({ ...call, endpoints: [endpoint] });
      this.#directErrors.delete(host);
      return result;
    } catch (error) {
      const isSent = !isEndpointFailure(error) || error.facts['requestSent'] !== false;
      if (isSent || call.deadline.isOver) throw error;
      this.#directErrors.set(host, `${endpoint.origin}: ${error.message}`);
      return undefined;
    }
  }

  /** Reads the addresses of the hosts, unless an endpoint is known to be on this one. */
  async #learnHosts(host: string, signal: AbortSignal): Promise<void> {
    if (!this.#endpoints.mayReachHosts || this.#endpoints.isOnHost(host)) return;
    if (this.#clock.monotonic() - this.#hostsReadAt < HOSTS_MAX_AGE_MS) return;
    try {
      const { data, endpoint } = await this.request({
        method: 'GET',
        path: '/cluster/status',
        operation: 'read the addresses of the hosts',
        timeoutMs: HOSTS_TIMEOUT_MS,
        signal,
      });
      this.#endpoints.learnHosts(parseReportedHosts(data), endpoint);
      this.#hostsError = undefined;
    } catch (error) {
      if (!(error instanceof PvescalerError) || error instanceof Cancelled) throw error;
      this.#hostsError = error;
    }
    this.#hostsReadAt = this.#clock.monotonic();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#transport.close();
  }

  #abortOnClose(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined
      ? this.#closed.signal
      : AbortSignal.any([signal, this.#closed.signal]);
  }

  #logIn(form: Parameters): Promise<unknown> {
    const request = {
      method: 'POST',
      path: '/access/ticket',
      operation: 'log in',
      form,
      repeatable: true,
      signal: this.#closed.signal,
    } as const;
    // Several calls wait for one login: the deadline of each ends its own wait.
    const deadline = new CallDeadline(request, this.#clock);
    return this.#tryEndpoints({ ...request, deadline }, {}).then((result) => result.data);
  }

  /** A 401 means that the request had no effect, so any request may be sent again with new credentials. */
  async #sendAuthenticated(request: Call): Promise<ApiResult> {
    const headers = await this.#authorizationHeaders(request);
    try {
      return await this.#tryEndpoints(request, headers);
    } catch (error) {
      const isRefused = error instanceof PvescalerError && error.facts['status'] === 401;
      if (!isRefused || !this.#session.invalidate(headers)) throw error;
    }
    return this.#tryEndpoints(request, await this.#authorizationHeaders(request));
  }

  #authorizationHeaders(request: Call): Promise<Readonly<Record<string, string>>> {
    const signal = request.deadline.limit(request.signal);
    return rejectAsNotSent(this.#session.headers(request.method, signal));
  }

  async #tryEndpoints(
    request: Call,
    headers: Readonly<Record<string, string>>,
  ): Promise<ApiResult> {
    const signal = request.deadline.limit(request.signal);
    let lastError: unknown;
    for (const endpoint of request.endpoints ?? this.#endpoints.orderedFor(request.host)) {
      try {
        const limit =
          request.waitsForGuest === true ? endpoint.guestRequestLimit : endpoint.requestLimit;
        return await limit.run(() => this.#tryEndpoint(endpoint, request, headers), signal);
      } catch (error) {
        if (!isEndpointFailure(error) || request.deadline.isOver) throw error;
        if (!request.repeatable && error.facts['requestSent'] !== false) throw error;
        lastError = error;
      }
    }
    throw lastError;
  }

  /** Marks a failed endpoint before its slot is released, so that no queued request is sent to it. */
  async #tryEndpoint(
    endpoint: Endpoint,
    request: Call,
    headers: Readonly<Record<string, string>>,
  ): Promise<ApiResult> {
    try {
      return await this.#send(endpoint, request, headers);
    } catch (error) {
      // At the deadline of the call the endpoint may be healthy: it had less time than to report 596.
      const endedEarly = request.deadline.isOver && isTimedOutAfterSending(error);
      if (isCutOffFromCluster(error) || (isEndpointFailure(error) && !endedEarly))
        this.#endpoints.markFailed(endpoint);
      throw error;
    }
  }

  async #send(
    endpoint: Endpoint,
    request: Call,
    headers: Readonly<Record<string, string>>,
  ): Promise<ApiResult> {
    const response = await this.#transport.request(
      this.#buildTransportRequest(`${endpoint.origin}/api2/json${request.path}`, request, headers),
    );
    const body = await readText(response.body);
    this.#endpoints.markResponsive(endpoint);
    if (response.status >= 300) {
      throw translateErrorResponse(
        { status: response.status, reason: response.reason, body },
        {
          operation: request.operation,
          facts: errorFacts(request),
          secrets: this.#secretsOf(request),
        },
      );
    }
    return { ...parseResult(body, request), endpoint };
  }

  #buildTransportRequest(
    url: string,
    request: Call,
    headers: Readonly<Record<string, string>>,
  ): TransportRequest {
    const query = encodeForm(request.query ?? {});
    return {
      method: request.method,
      url: query === '' ? url : `${url}?${query}`,
      timeoutMs: Math.min(
        request.deadline.leftMs,
        this.#limits.requestTimeoutMs + uploadMs(request),
      ),
      signal: request.signal,
      ...encodeContent(request, { accept: 'application/json', ...headers }),
    };
  }

  #secretsOf(request: ApiRequest): readonly string[] {
    return [...this.#session.secrets(), ...findSecretValues(request.form ?? {})];
  }
}

/** A request with its defaults applied. */
interface Call extends ApiRequest {
  readonly signal: AbortSignal;
  readonly repeatable: boolean;
  readonly deadline: CallDeadline;
  /** Default: the configured endpoints. */
  readonly endpoints?: readonly Endpoint[];
}

function uploadMs({ upload }: ApiRequest): number {
  return Math.min((upload?.body.byteLength ?? 0) / MIN_UPLOAD_BYTES_PER_MS, MAX_UPLOAD_MS);
}

function encodeContent(
  request: ApiRequest,
  headers: Readonly<Record<string, string>>,
): Pick<TransportRequest, 'headers' | 'body'> {
  if (request.upload !== undefined) {
    const type = { 'content-type': request.upload.contentType };
    return { headers: { ...headers, ...type }, body: request.upload.body };
  }
  const form = encodeForm(request.form ?? {});
  // Proxmox refuses a body on GET and DELETE, and an empty body with a content type.
  if (form === '') return { headers };
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  return { headers: { ...headers, ...type }, body: form };
}

function errorFacts(request: ApiRequest): Facts {
  return request.host === undefined
    ? (request.facts ?? {})
    : { host: request.host, ...request.facts };
}

function parseResult(body: string, request: ApiRequest): Omit<ApiResult, 'endpoint'> {
  const response = asObject(parseJson(body));
  if (!('data' in response)) {
    throw new Bug(
      'UNEXPECTED_ANSWER',
      `${request.operation}: the response is not from the Proxmox API`,
      {
        hint: 'Check that the endpoint is a Proxmox VE host, not a login page or a reverse proxy.',
        facts: errorFacts(request),
      },
    );
  }
  return { data: response['data'], total: asNumber(response['total']) };
}

function parseReportedHosts(data: unknown): readonly ReportedHost[] {
  return asObjects(data).flatMap((entry) => {
    const name = asText(entry['name']);
    if (entry['type'] !== 'node' || name === undefined) return [];
    return [{ name, address: asText(entry['ip']), isLocal: asBoolean(entry['local']) }];
  });
}

/** The same error, with what to do about the host. */
function withHostUnreachable(
  error: unknown,
  { host, reason }: { readonly host: string; readonly reason: string },
): unknown {
  if (!(error instanceof PvescalerError) || error instanceof Cancelled) return error;
  const hint =
    `Host ${host} could not be contacted at its own address (${reason}), so another host had to copy the file to it by ssh. ` +
    `Let ${host} be reached on port 8006 with a certificate that the region's tls settings trust, or add it to the region's endpoints.`;
  return deserializeError({ ...serializeError(error), hint });
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of body) text += decoder.decode(part, { stream: true });
  return text + decoder.decode();
}

/** The endpoint failed, not the operation: another endpoint may succeed. */
function isEndpointFailure(error: unknown): error is PvescalerError {
  if (!(error instanceof PvescalerError)) return false;
  const hasNoResponse = error.facts['status'] === undefined;
  return (
    (hasNoResponse && (error.class === 'Unreachable' || error.class === 'TimedOut')) ||
    ['TLS_NOT_TRUSTED', 'SSH_HOST_KEY_NOT_TRUSTED', 'SSH_LOGIN_REFUSED'].includes(error.code) ||
    error.code === 'PVE_UNREACHABLE'
  );
}

function isTimedOutAfterSending(error: unknown): boolean {
  return error instanceof TimedOut && error.facts['requestSent'] !== false;
}

/**
 * The endpoint responds but has no quorum or no access to /etc/pve, and so to the user database. Its data may be stale:
 * later requests use another endpoint.
 */
function isCutOffFromCluster(error: unknown): boolean {
  if (!(error instanceof PvescalerError)) return false;
  const hasNoClusterFiles = error.code === 'PVE_HOST_UNREACHABLE' && error.facts['status'] === 500;
  return (
    hasNoClusterFiles || error.code === 'PVE_NO_QUORUM' || error.code === 'CREDENTIALS_REFUSED'
  );
}

/**
 * Errors to retry within the same request. Not 595 (no connection to the target host): each attempt would wait for that
 * host again, and the caller retries later anyway.
 */
function isTransient(error: unknown): boolean {
  if (!(error instanceof PvescalerError)) return false;
  if (error.code === 'PVE_HOST_UNREACHABLE') return error.facts['status'] !== 595;
  return ['PVE_UNREACHABLE', 'REQUEST_TIMED_OUT', 'LOCK_TIMED_OUT'].includes(error.code);
}
