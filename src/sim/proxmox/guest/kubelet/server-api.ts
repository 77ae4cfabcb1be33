// SPDX-License-Identifier: Apache-2.0
// HTTP client of a guest: JSON calls to one Kubernetes server.
import type { Transport, TransportRequest } from '../../../../ports/transport.ts';

/** Opens a connection to a server outside the simulation. The caller closes the transport. */
export type OpenConnection = (trust: ServerTrust) => Promise<Transport>;

export interface ServerTrust {
  /** Undefined = the server is not verified; only for data that is then checked against a hash or signature. */
  readonly caPem: string | undefined;
  readonly client?: { readonly certPem: string; readonly keyPem: string };
}

/** The join failed for good: a retry would fail in the same way. */
export class JoinRefusedError extends Error {}

export class ApiCallError extends Error {
  readonly status: number;

  constructor(call: string, status: number, message: string) {
    super(`${call}: ${status} ${message}`.trimEnd());
    this.status = status;
  }
}

const REQUEST_TIMEOUT_MS = 10_000;
const CONTENT_TYPES = {
  GET: 'application/json',
  POST: 'application/json',
  PUT: 'application/json',
  DELETE: 'application/json',
  PATCH: 'application/strategic-merge-patch+json',
} as const;

export class ServerApi {
  readonly #transport: Transport;
  readonly #server: string;
  readonly #bearer: string | undefined;
  readonly #signal: AbortSignal;

  constructor(options: {
    readonly transport: Transport;
    /** `https://host:port`. */
    readonly server: string;
    readonly bearer?: string;
    readonly signal: AbortSignal;
  }) {
    this.#transport = options.transport;
    this.#server = options.server;
    this.#bearer = options.bearer;
    this.#signal = options.signal;
  }

  /** Returns the response body. Throws ApiCallError for every status from 300. */
  async requestText(
    method: TransportRequest['method'],
    path: string,
    body?: unknown,
  ): Promise<string> {
    const { status, body: stream } = await this.#request(
      method,
      path,
      body === undefined ? {} : { body: JSON.stringify(body) },
    );
    const text = await readBodyText(stream);
    if (status >= 300) throw new ApiCallError(`${method} ${path}`, status, readStatusMessage(text));
    return text;
  }

  async requestJson(
    method: TransportRequest['method'],
    path: string,
    body?: unknown,
  ): Promise<unknown> {
    return JSON.parse(await this.requestText(method, path, body));
  }

  /** Yields the events of a watch until the server ends it. */
  async *watch(path: string): AsyncGenerator<unknown, void, void> {
    const { status, body } = await this.#request('GET', path, { streamsResponse: true });
    if (status >= 300) throw new ApiCallError(`WATCH ${path}`, status, await readBodyText(body));
    const decoder = new TextDecoder();
    let rest = '';
    for await (const part of body) {
      const lines = (rest + decoder.decode(part, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) yield JSON.parse(line);
    }
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  #request(
    method: TransportRequest['method'],
    path: string,
    extra: Pick<TransportRequest, 'body' | 'streamsResponse'>,
  ) {
    return this.#transport.request({
      method,
      url: `${this.#server}${path}`,
      headers: {
        accept: 'application/json',
        'content-type': CONTENT_TYPES[method],
        ...(this.#bearer !== undefined && { authorization: `Bearer ${this.#bearer}` }),
      },
      timeoutMs: REQUEST_TIMEOUT_MS,
      signal: this.#signal,
      ...extra,
    });
  }
}

async function readBodyText(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of stream) text += decoder.decode(part, { stream: true });
  return text + decoder.decode();
}

/** The message of a Status object, or the first line of any other body. */
function readStatusMessage(text: string): string {
  const message = /"message":\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1];
  return message ?? text.split('\n')[0] ?? '';
}
