// SPDX-License-Identifier: Apache-2.0
// The guest's side of HTTP: JSON calls to one server, with what they mean for a node that is joining.
import type { Transport, TransportRequest } from '../../../../ports/transport.ts';

/** How a guest reaches servers outside the simulation. The caller closes what it opened. */
export type OpenConnection = (trust: ServerTrust) => Promise<Transport>;

export interface ServerTrust {
  /** Undefined = whoever answers; only for reading what is then held against a hash. */
  readonly caPem: string | undefined;
  readonly client?: { readonly certPem: string; readonly keyPem: string };
}

/** Trying again changes nothing. */
export class JoinRefused extends Error {}

export class CallFailed extends Error {
  readonly status: number;

  constructor(call: string, status: number, message: string) {
    super(`${call}: ${status} ${message}`.trimEnd());
    this.status = status;
  }
}

const HEAD_TIMEOUT_MS = 10_000;
const TYPES = {
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

  /** The answer as text; CallFailed for every status that is no success. */
  async text(method: TransportRequest['method'], path: string, body?: unknown): Promise<string> {
    const { status, body: stream } = await this.#request(method, path, body);
    const text = await textOfBody(stream);
    if (status >= 300) throw new CallFailed(`${method} ${path}`, status, messageOf(text));
    return text;
  }

  async json(method: TransportRequest['method'], path: string, body?: unknown): Promise<unknown> {
    return JSON.parse(await this.text(method, path, body));
  }

  /** The events of a watch, until the server ends it. */
  async *watch(path: string): AsyncGenerator<unknown, void, void> {
    const { status, body } = await this.#request('GET', path);
    if (status >= 300) throw new CallFailed(`WATCH ${path}`, status, await textOfBody(body));
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

  #request(method: TransportRequest['method'], path: string, body?: unknown) {
    return this.#transport.request({
      method,
      url: `${this.#server}${path}`,
      headers: {
        accept: 'application/json',
        'content-type': TYPES[method],
        ...(this.#bearer !== undefined && { authorization: `Bearer ${this.#bearer}` }),
      },
      headTimeoutMs: HEAD_TIMEOUT_MS,
      signal: this.#signal,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }
}

async function textOfBody(stream: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of stream) text += decoder.decode(part, { stream: true });
  return text + decoder.decode();
}

/** What a Status object says, or the first line of anything else. */
function messageOf(text: string): string {
  const said = /"message":\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1];
  return said ?? text.split('\n')[0] ?? '';
}
