// SPDX-License-Identifier: Apache-2.0
// Plain JSON calls to an API server, for what a test sets up and looks at. No watch, no cache, no retry.
import type { Transport, TransportRequest } from '../../../src/ports/transport.ts';
import { openHttpTransport } from '../../../src/system/index.ts';
import type { KeyAndCertificate } from './authority.ts';

const HEAD_TIMEOUT_MS = 30_000;

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** An object of the API, as far as every object is alike. */
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

interface Call {
  readonly method: TransportRequest['method'];
  readonly path: string;
  readonly body: unknown;
  readonly type: string;
}

export class ApiCallFailed extends Error {
  readonly status: number;

  constructor(call: string, answer: Answer) {
    super(`${call}: ${answer.status} ${JSON.stringify(answer.body)}`);
    this.status = answer.status;
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

  /** Whatever the answer is. */
  call(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
  ): Promise<Answer> {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    return this.#send({ method, path, body, type });
  }

  /** Server-side apply, whatever the answer is. */
  apply(path: string, body: unknown): Promise<Answer> {
    return this.#send({ method: 'PATCH', path, body, type: 'application/apply-patch+yaml' });
  }

  async #send({ method, path, body, type }: Call): Promise<Answer> {
    const transport = await this.#transport;
    const answer = await transport.request({
      method,
      url: `${this.server}${path}`,
      headers: { accept: 'application/json', 'content-type': type, ...this.#headers },
      headTimeoutMs: HEAD_TIMEOUT_MS,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const parts: Uint8Array[] = [];
    for await (const part of answer.body) parts.push(part);
    const text = Buffer.concat(parts).toString('utf8');
    return { status: answer.status, body: parsed(text) };
  }

  /** Throws unless it succeeded. */
  async demand<T>(...[method, path, body]: Parameters<Api['call']>): Promise<T> {
    const answer = await this.call(method, path, body);
    if (answer.status >= 300) throw new ApiCallFailed(`${method} ${path}`, answer);
    return answer.body as T;
  }

  get<T extends ApiObject = ApiObject>(path: string): Promise<T> {
    return this.demand<T>('GET', path);
  }

  async list<T extends ApiObject = ApiObject>(path: string): Promise<readonly T[]> {
    return (await this.demand<{ readonly items: readonly T[] }>('GET', path)).items;
  }

  create(path: string, body: unknown): Promise<ApiObject> {
    return this.demand('POST', path, body);
  }

  patch(path: string, body: unknown): Promise<ApiObject> {
    return this.demand('PATCH', path, body);
  }

  delete(path: string, body?: unknown): Promise<unknown> {
    return this.demand('DELETE', path, body);
  }

  async close(): Promise<void> {
    await (await this.#transport).close();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
