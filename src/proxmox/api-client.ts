// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { Bug, Cancelled, PvescalerError } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import type { SizedBody, Transport, TransportRequest } from '../ports/transport.ts';
import { type Endpoint, Endpoints } from './endpoints.ts';
import { encodeForm, findSecretValues, type Parameters } from './form.ts';
import { asNumber, asObject, parseJson } from './json.ts';
import { rejectAsNotSent } from './not-sent.ts';
import { retryWithBackoff } from './retry.ts';
import { type Credentials, createSession, type Session } from './session.ts';
import { type Facts, translateErrorResponse } from './translate-errors.ts';

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below /api2/json, segments encoded. */
  readonly path: string;
  /** What an error says was being done. */
  readonly operation: string;
  readonly query?: Parameters;
  readonly form?: Parameters;
  readonly upload?: { readonly contentType: string; readonly body: SizedBody };
  /** Carrying it out twice is the same as once. Only such a call is sent again after a lost answer. */
  readonly repeatable?: boolean;
  /** The host it is about. */
  readonly host?: string;
  readonly facts?: Facts;
  readonly timeoutMs?: number;
  /** A guest that is silent keeps it for seconds. */
  readonly waitsForGuest?: boolean;
  readonly signal?: AbortSignal | undefined;
}

export interface ApiResult {
  readonly data: unknown;
  /** Of lists that come in pages. */
  readonly total: number | undefined;
}

export interface ApiLimits {
  /** Requests under way at one endpoint. */
  readonly maxConcurrentRequests: number;
  readonly requestTimeoutMs: number;
  /** How long an endpoint that failed is tried last. */
  readonly endpointCooldownMs: number;
  /** Of a repeatable call. */
  readonly maxAttempts: number;
}

export const DEFAULT_LIMITS: ApiLimits = {
  maxConcurrentRequests: 6,
  // A host waits up to 30 s for another one, then answers 596: longer than that, to hear it.
  requestTimeoutMs: 35_000,
  endpointCooldownMs: 30_000,
  maxAttempts: 4,
};

export interface ApiClientOptions {
  readonly endpoints: readonly string[];
  readonly credentials: Credentials;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits?: Partial<ApiLimits>;
}

/** Calls of the API, each from choosing an endpoint to data or an error of ours. */
export class ApiClient {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limits: ApiLimits;
  readonly #endpoints: Endpoints;
  readonly #session: Session;
  readonly #closed = new AbortController();

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

  /** `user@realm` on whose behalf calls are made. */
  get user(): string {
    return this.#session.user;
  }

  async requestData(call: ApiRequest): Promise<unknown> {
    return (await this.request(call)).data;
  }

  async request(call: ApiRequest): Promise<ApiResult> {
    const signal = this.#abortOnClose(call.signal);
    const bound = { ...call, signal, repeatable: call.repeatable ?? call.method === 'GET' };
    if (signal.aborted) throw new Cancelled('CANCELLED', `${call.operation}: called off`);
    if (!bound.repeatable) return this.#sendAuthenticated(bound);
    return retryWithBackoff(() => this.#sendAuthenticated(bound), {
      clock: this.#clock,
      random: this.#random,
      signal,
      maxAttempts: this.#limits.maxAttempts,
      initialBackoffMs: 400,
      maxBackoffMs: 5_000,
      isTransient,
    });
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
    const call: ApiRequest = {
      method: 'POST',
      path: '/access/ticket',
      operation: 'log in',
      form,
      repeatable: true,
      signal: this.#closed.signal,
    };
    return this.#tryEndpoints(call, {}).then((envelope) => envelope.data);
  }

  /** A refused login was refused before anything was done: with a new one, any call may be sent again. */
  async #sendAuthenticated(call: ApiRequest): Promise<ApiResult> {
    const headers = await this.#authorizationHeaders(call);
    try {
      return await this.#tryEndpoints(call, headers);
    } catch (error) {
      const isRefused = error instanceof PvescalerError && error.facts['status'] === 401;
      if (!isRefused || !this.#session.invalidate(headers)) throw error;
    }
    return this.#tryEndpoints(call, await this.#authorizationHeaders(call));
  }

  #authorizationHeaders(call: ApiRequest): Promise<Readonly<Record<string, string>>> {
    return rejectAsNotSent(this.#session.headers(call.method, call.signal));
  }

  async #tryEndpoints(
    call: ApiRequest,
    headers: Readonly<Record<string, string>>,
  ): Promise<ApiResult> {
    let last: unknown;
    for (const endpoint of this.#endpoints.orderedFor(call.host)) {
      try {
        const gate =
          call.waitsForGuest === true ? endpoint.guestRequestLimit : endpoint.requestLimit;
        return await gate.run(() => this.#tryEndpoint(endpoint, call, headers), call.signal);
      } catch (error) {
        if (!isEndpointFailure(error, call)) throw error;
        if (call.repeatable !== true && error.facts['requestSent'] !== false) throw error;
        last = error;
      }
    }
    throw last;
  }

  /** Trouble is noted before the place is given up: nobody who waited for it gets in after that. */
  async #tryEndpoint(
    endpoint: Endpoint,
    call: ApiRequest,
    headers: Readonly<Record<string, string>>,
  ): Promise<ApiResult> {
    try {
      return await this.#send(endpoint, call, headers);
    } catch (error) {
      if (isEndpointFailure(error, call) || isCutOffFromCluster(error))
        this.#endpoints.markFailed(endpoint);
      throw error;
    }
  }

  async #send(
    endpoint: Endpoint,
    call: ApiRequest,
    headers: Readonly<Record<string, string>>,
  ): Promise<ApiResult> {
    const answer = await this.#transport.request(
      this.#buildTransportRequest(`${endpoint.origin}/api2/json${call.path}`, call, headers),
    );
    const body = await readText(answer.body);
    this.#endpoints.markResponsive(endpoint);
    if (answer.status >= 300) {
      throw translateErrorResponse(
        { status: answer.status, reason: answer.reason, body },
        { operation: call.operation, facts: errorFacts(call), secrets: this.#secretsOf(call) },
      );
    }
    return parseResult(body, call);
  }

  #buildTransportRequest(
    url: string,
    call: ApiRequest,
    headers: Readonly<Record<string, string>>,
  ): TransportRequest {
    const query = encodeForm(call.query ?? {});
    return {
      method: call.method,
      url: query === '' ? url : `${url}?${query}`,
      headTimeoutMs: call.timeoutMs ?? this.#limits.requestTimeoutMs,
      signal: call.signal,
      ...encodeContent(call, { accept: 'application/json', ...headers }),
    };
  }

  #secretsOf(call: ApiRequest): readonly string[] {
    return [...this.#session.secrets(), ...findSecretValues(call.form ?? {})];
  }
}

function encodeContent(
  call: ApiRequest,
  headers: Readonly<Record<string, string>>,
): Pick<TransportRequest, 'headers' | 'body'> {
  if (call.upload !== undefined) {
    const type = { 'content-type': call.upload.contentType };
    return { headers: { ...headers, ...type }, body: call.upload.body };
  }
  const form = encodeForm(call.form ?? {});
  // A body on GET and DELETE, and an empty one with a content type, are refused.
  if (form === '') return { headers };
  const type = { 'content-type': 'application/x-www-form-urlencoded' };
  return { headers: { ...headers, ...type }, body: form };
}

function errorFacts(call: ApiRequest): Facts {
  return call.host === undefined ? (call.facts ?? {}) : { host: call.host, ...call.facts };
}

function parseResult(body: string, call: ApiRequest): ApiResult {
  const envelope = asObject(parseJson(body));
  if (!('data' in envelope)) {
    throw new Bug(
      'UNEXPECTED_ANSWER',
      `${call.operation}: the answer is not one of the Proxmox API`,
      {
        hint: 'Check that the endpoint is a Proxmox VE host and not something in front of it.',
        facts: errorFacts(call),
      },
    );
  }
  return { data: envelope['data'], total: asNumber(envelope['total']) };
}

async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of body) text += decoder.decode(part, { stream: true });
  return text + decoder.decode();
}

/** The endpoint itself is the trouble, not what was asked of it: another one may answer. */
function isEndpointFailure(error: unknown, call: ApiRequest): error is PvescalerError {
  if (!(error instanceof PvescalerError)) return false;
  // Who waits less than an endpoint waits for the host behind it cannot tell which of the two is slow.
  const hasShortTimeout = call.timeoutMs !== undefined && error.facts['requestSent'] !== false;
  if (error.class === 'TimedOut' && hasShortTimeout) return false;
  const fromSocket = error.facts['status'] === undefined;
  return (
    (fromSocket && (error.class === 'Unreachable' || error.class === 'TimedOut')) ||
    error.code === 'TLS_NOT_TRUSTED' ||
    error.code === 'PVE_UNREACHABLE'
  );
}

/**
 * It answers, but is cut off from its cluster, or has lost sight of the cluster's files and with them of all users: what
 * it says of the region may be old. Whatever is asked next is better asked of another.
 */
function isCutOffFromCluster(error: unknown): boolean {
  if (!(error instanceof PvescalerError)) return false;
  const hasNoClusterFiles = error.code === 'PVE_HOST_UNREACHABLE' && error.facts['status'] === 500;
  return (
    hasNoClusterFiles || error.code === 'PVE_NO_QUORUM' || error.code === 'CREDENTIALS_REFUSED'
  );
}

/**
 * Worth another try within the same call. Not a host that cannot be connected to (595): each try would wait
 * for it again, and whoever asked comes back later anyway.
 */
function isTransient(error: unknown): boolean {
  if (!(error instanceof PvescalerError)) return false;
  if (error.code === 'PVE_HOST_UNREACHABLE') return error.facts['status'] !== 595;
  return ['PVE_UNREACHABLE', 'REQUEST_TIMED_OUT', 'LOCK_TIMED_OUT'].includes(error.code);
}
