// SPDX-License-Identifier: Apache-2.0
// Plain JSON calls to an API server, for the setup and the checks of a test. No cache, no retry.
import type { Transport, TransportRequest } from '../../../src/ports/transport.ts';
import { openHttpTransport } from '../../../src/system/index.ts';
import type { KeyAndCertificate } from './certificate-authority.ts';

const REQUEST_TIMEOUT_MS = 30_000;

export interface ApiResponse {
  readonly status: number;
  readonly body: unknown;
}

/** The fields that every API object has. */
export interface ApiObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly creationTimestamp: string;
    readonly deletionTimestamp?: string;
    readonly resourceVersion: string;
  };
}

export interface WatchEvent<T extends ApiObject> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: T;
}

interface Call {
  readonly method: TransportRequest['method'];
  readonly path: string;
  readonly body: unknown;
  readonly type: string;
}

export class ApiCallFailed extends Error {
  readonly status: number;

  constructor(call: string, response: ApiResponse) {
    super(`${call}: ${response.status} ${JSON.stringify(response.body)}`);
    this.status = response.status;
  }
}

export class Api {
  readonly server: string;
  readonly #transport: Promise<Transport>;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(
    server: string,
    trust: {
      readonly caPem: string;
      readonly client?: KeyAndCertificate;
      readonly bearer?: string;
    },
  ) {
    const { caPem, client, bearer } = trust;
    this.server = server;
    this.#headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
    const identity = client === undefined ? {} : { client };
    this.#transport = openHttpTransport({
      tls: { kind: 'verify', caPem, ...identity },
      unreachable: 'KUBERNETES_UNREACHABLE',
    });
  }

  /** Returns the response, whatever its status. */
  call(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
  ): Promise<ApiResponse> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    return this.#send({ method, path, body, type });
  }

  /** Server-side apply; returns the response, whatever its status. */
  apply(path: string, body: unknown): Promise<ApiResponse> {
    return this.#send({ method: 'PATCH', path, body, type: 'application/apply-patch+yaml' });
  }

  /** The objects of a collection and all later changes, until the signal aborts or the server ends the watch. */
  async *watch<T extends ApiObject>(
    path: string,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent<T>> {
    const transport = await this.#transport;
    const url = `${this.server}${path}?watch=1`;
    const headers = { accept: 'application/json', ...this.#headers };
    const response = await transport.request({
      method: 'GET',
      url,
      headers,
      timeoutMs: REQUEST_TIMEOUT_MS,
      streamsResponse: true,
      signal,
    });
    let rest = '';
    const decoder = new TextDecoder();
    for await (const part of response.body) {
      const lines = (rest + decoder.decode(part, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) yield JSON.parse(line) as WatchEvent<T>;
    }
  }

  async #send({ method, path, body, type }: Call): Promise<ApiResponse> {
    const transport = await this.#transport;
    const response = await transport.request({
      method,
      url: `${this.server}${path}`,
      headers: { accept: 'application/json', 'content-type': type, ...this.#headers },
      timeoutMs: REQUEST_TIMEOUT_MS,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const parts: Uint8Array[] = [];
    for await (const part of response.body) parts.push(part);
    const text = Buffer.concat(parts).toString('utf8');
    return { status: response.status, body: parseJsonOrText(text) };
  }

  /** Throws unless the call succeeded. */
  async callOrThrow<T>(...[method, path, body]: Parameters<Api['call']>): Promise<T> {
    const response = await this.call(method, path, body);
    if (response.status >= 300) throw new ApiCallFailed(`${method} ${path}`, response);
    return response.body as T;
  }

  get<T extends ApiObject = ApiObject>(path: string): Promise<T> {
    return this.callOrThrow<T>('GET', path);
  }

  async list<T extends ApiObject = ApiObject>(path: string): Promise<readonly T[]> {
    return (await this.callOrThrow<{ readonly items: readonly T[] }>('GET', path)).items;
  }

  create(path: string, body: unknown): Promise<ApiObject> {
    return this.callOrThrow('POST', path, body);
  }

  patch(path: string, body: unknown): Promise<ApiObject> {
    return this.callOrThrow('PATCH', path, body);
  }

  delete(path: string, body?: unknown): Promise<unknown> {
    return this.callOrThrow('DELETE', path, body);
  }

  async close(): Promise<void> {
    await (await this.#transport).close();
  }
}

function parseJsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
