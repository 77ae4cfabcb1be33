// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../ports/clock.ts';
import { Bug, Cancelled, PvescalerError } from '../ports/errors.ts';
import type { Random } from '../ports/random.ts';
import type { SizedBody, Transport, TransportRequest } from '../ports/transport.ts';
import { type Endpoint, Endpoints } from './endpoints.ts';
import { encodeForm, type Parameters } from './form.ts';
import { numberOf, parsed, recordOf } from './json.ts';
import { beforeSending } from './not-sent.ts';
import { retrying } from './retry.ts';
import { secretsIn } from './secret-parameters.ts';
import { type Credentials, createSession, type Session } from './session.ts';
import { type Facts, translateAnswer } from './translate.ts';

export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below /api2/json, segments encoded. */
  readonly path: string;
  /** What an error says was being done. */
  readonly doing: string;
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

export interface Envelope {
  readonly data: unknown;
  /** Of lists that come in pages. */
  readonly total: number | undefined;
}

export interface ApiLimits {
  /** Requests under way at one endpoint. */
  readonly requestsAtOnce: number;
  readonly requestTimeoutMs: number;
  /** How long an endpoint that failed is tried last. */
  readonly endpointRestMs: number;
  /** Of a repeatable call. */
  readonly attempts: number;
}

export const DEFAULT_LIMITS: ApiLimits = {
  requestsAtOnce: 6,
  // A host waits up to 30 s for another one, then answers 596: longer than that, to hear it.
  requestTimeoutMs: 35_000,
  endpointRestMs: 30_000,
  attempts: 4,
};

export interface ApiOptions {
  readonly endpoints: readonly string[];
  readonly credentials: Credentials;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly limits?: Partial<ApiLimits>;
}

/** Calls of the API, each from choosing an endpoint to data or an error of ours. */
export class Api {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #limits: ApiLimits;
  readonly #endpoints: Endpoints;
  readonly #session: Session;
  readonly #closed = new AbortController();

  constructor(options: ApiOptions) {
    this.#transport = options.transport;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#endpoints = new Endpoints(options.endpoints, {
      clock: options.clock,
      restMs: this.#limits.endpointRestMs,
      requestsAtOnce: this.#limits.requestsAtOnce,
    });
    this.#session = createSession(options.credentials, {
      clock: options.clock,
      login: (form) => this.#login(form),
    });
  }

  /** `user@realm` on whose behalf calls are made. */
  get user(): string {
    return this.#session.user;
  }

  async data(call: ApiCall): Promise<unknown> {
    return (await this.call(call)).data;
  }

  async call(call: ApiCall): Promise<Envelope> {
    const signal = this.#withClose(call.signal);
    const bound = { ...call, signal, repeatable: call.repeatable ?? call.method === 'GET' };
    if (signal.aborted) throw new Cancelled('CANCELLED', `${call.doing}: called off`);
    if (!bound.repeatable) return this.#authenticated(bound);
    return retrying(() => this.#authenticated(bound), {
      clock: this.#clock,
      random: this.#random,
      signal,
      attempts: this.#limits.attempts,
      firstPauseMs: 400,
      longestPauseMs: 5_000,
      isPassing,
    });
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#transport.close();
  }

  #withClose(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined
      ? this.#closed.signal
      : AbortSignal.any([signal, this.#closed.signal]);
  }

  #login(form: Parameters): Promise<unknown> {
    const call: ApiCall = {
      method: 'POST',
      path: '/access/ticket',
      doing: 'log in',
      form,
      repeatable: true,
      signal: this.#closed.signal,
    };
    return this.#acrossEndpoints(call, {}).then((envelope) => envelope.data);
  }

  /** A refused login was refused before anything was done: with a new one, any call may be sent again. */
  async #authenticated(call: ApiCall): Promise<Envelope> {
    const headers = await this.#authorization(call);
    try {
      return await this.#acrossEndpoints(call, headers);
    } catch (error) {
      const isRefused = error instanceof PvescalerError && error.facts['status'] === 401;
      if (!isRefused || !this.#session.renew(headers)) throw error;
    }
    return this.#acrossEndpoints(call, await this.#authorization(call));
  }

  #authorization(call: ApiCall): Promise<Readonly<Record<string, string>>> {
    return beforeSending(this.#session.headers(call.method, call.signal));
  }

  async #acrossEndpoints(
    call: ApiCall,
    headers: Readonly<Record<string, string>>,
  ): Promise<Envelope> {
    let last: unknown;
    for (const endpoint of this.#endpoints.inOrder(call.host)) {
      try {
        const gate = call.waitsForGuest === true ? endpoint.waitingRoom : endpoint.gate;
        return await gate.run(() => this.#attempt(endpoint, call, headers), call.signal);
      } catch (error) {
        if (!isEndpointTrouble(error, call)) throw error;
        if (call.repeatable !== true && error.facts['requestSent'] !== false) throw error;
        last = error;
      }
    }
    throw last;
  }

  /** Trouble is noted before the place is given up: nobody who waited for it gets in after that. */
  async #attempt(
    endpoint: Endpoint,
    call: ApiCall,
    headers: Readonly<Record<string, string>>,
  ): Promise<Envelope> {
    try {
      return await this.#exchange(endpoint, call, headers);
    } catch (error) {
      if (isEndpointTrouble(error, call) || isOutOfStep(error)) this.#endpoints.failed(endpoint);
      throw error;
    }
  }

  async #exchange(
    endpoint: Endpoint,
    call: ApiCall,
    headers: Readonly<Record<string, string>>,
  ): Promise<Envelope> {
    const answer = await this.#transport.request(
      this.#requestOf(`${endpoint.origin}/api2/json${call.path}`, call, headers),
    );
    const body = await wholeText(answer.body);
    this.#endpoints.answered(endpoint);
    if (answer.status >= 300) {
      throw translateAnswer(
        { status: answer.status, reason: answer.reason, body },
        { doing: call.doing, facts: factsOf(call), secrets: this.#secrets(call) },
      );
    }
    return envelopeOf(body, call);
  }

  #requestOf(
    url: string,
    call: ApiCall,
    headers: Readonly<Record<string, string>>,
  ): TransportRequest {
    const query = encodeForm(call.query ?? {});
    return {
      method: call.method,
      url: query === '' ? url : `${url}?${query}`,
      headTimeoutMs: call.timeoutMs ?? this.#limits.requestTimeoutMs,
      signal: call.signal,
      ...contentOf(call, { accept: 'application/json', ...headers }),
    };
  }

  #secrets(call: ApiCall): readonly string[] {
    return [...this.#session.secrets(), ...secretsIn(call.form ?? {})];
  }
}

function contentOf(
  call: ApiCall,
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

function factsOf(call: ApiCall): Facts {
  return call.host === undefined ? (call.facts ?? {}) : { host: call.host, ...call.facts };
}

function envelopeOf(body: string, call: ApiCall): Envelope {
  const envelope = recordOf(parsed(body));
  if (!('data' in envelope)) {
    throw new Bug('UNEXPECTED_ANSWER', `${call.doing}: the answer is not one of the Proxmox API`, {
      hint: 'Check that the endpoint is a Proxmox VE host and not something in front of it.',
      facts: factsOf(call),
    });
  }
  return { data: envelope['data'], total: numberOf(envelope['total']) };
}

async function wholeText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of body) text += decoder.decode(part, { stream: true });
  return text + decoder.decode();
}

/** The endpoint itself is the trouble, not what was asked of it: another one may answer. */
function isEndpointTrouble(error: unknown, call: ApiCall): error is PvescalerError {
  if (!(error instanceof PvescalerError)) return false;
  // Who waits less than an endpoint waits for the host behind it cannot tell which of the two is slow.
  const wasImpatient = call.timeoutMs !== undefined && error.facts['requestSent'] !== false;
  if (error.class === 'TimedOut' && wasImpatient) return false;
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
function isOutOfStep(error: unknown): boolean {
  if (!(error instanceof PvescalerError)) return false;
  const hasNoFiles = error.code === 'PVE_HOST_UNREACHABLE' && error.facts['status'] === 500;
  return hasNoFiles || error.code === 'PVE_NO_QUORUM' || error.code === 'CREDENTIALS_REFUSED';
}

/**
 * Worth another try within the same call. Not a host that cannot be connected to (595): each try would wait
 * for it again, and whoever asked comes back later anyway.
 */
function isPassing(error: unknown): boolean {
  if (!(error instanceof PvescalerError)) return false;
  if (error.code === 'PVE_HOST_UNREACHABLE') return error.facts['status'] !== 595;
  return ['PVE_UNREACHABLE', 'REQUEST_TIMED_OUT', 'LOCK_TIMED_OUT'].includes(error.code);
}
