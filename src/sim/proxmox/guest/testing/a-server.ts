// SPDX-License-Identifier: Apache-2.0
// The little of an API server that a joining node talks to, without sockets. Lets everybody in unless told otherwise.
import { createHash } from 'node:crypto';
import { Unreachable } from '../../../../ports/errors.ts';
import {
  type RecordedRequest,
  type ScriptedAnswer,
  ScriptedTransport,
} from '../../../../ports/fakes/scripted-transport.ts';
import type { OpenConnection, ServerTrust } from '../kubelet/server-api.ts';

const CA = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';
export const CA_PREFIX = `K10${createHash('sha256').update(CA).digest('hex')}::`;

type Answer = ScriptedAnswer | undefined;

export interface AServer {
  readonly connect: OpenConnection;
  readonly trusts: ServerTrust[];
  /** `METHOD /path` of each request, in order. */
  readonly calls: string[];
  readonly bodies: Map<string, unknown>;
  isDown: boolean;
  /** Answers in the server's place; undefined = as usual. */
  override: (call: string) => Answer;
  /** One event to whoever watches pods. */
  tellPod(type: string, pod: unknown): void;
}

const json = (body: unknown, status = 200): ScriptedAnswer => ({
  status,
  body: JSON.stringify(body),
});
const status = (code: number, message: string) => json({ kind: 'Status', message }, code);

export function aServer(): AServer {
  const events: unknown[] = [];
  let wake: () => void = () => undefined;
  const server: AServer = {
    connect: (trust) => {
      server.trusts.push(trust);
      return Promise.resolve(new ScriptedTransport(answer));
    },
    trusts: [],
    calls: [],
    bodies: new Map(),
    isDown: false,
    override: () => undefined,
    tellPod: (type, object) => {
      events.push({ type, object });
      wake();
    },
  };
  const leases = new Set<string>();

  function answer(request: RecordedRequest): ScriptedAnswer {
    const call = `${request.method} ${request.url.pathname}`;
    if (server.isDown) throw new Unreachable('KUBERNETES_UNREACHABLE', 'connection refused');
    server.calls.push(
      request.url.searchParams.has('watch') ? `WATCH ${request.url.pathname}` : call,
    );
    const body: unknown = request.text === '' ? undefined : JSON.parse(request.text);
    if (body !== undefined) server.bodies.set(call, body);
    return server.override(call) ?? usual(request, call, body);
  }

  function usual({ url }: RecordedRequest, call: string, body: unknown): ScriptedAnswer {
    if (call === 'GET /cacerts') return { status: 200, body: CA };
    if (call.endsWith('/apiservers')) return json(['api.example:6443']);
    if (/^POST .*\/certificatesigningrequests$/.test(call))
      return json({ metadata: { name: 'csr' } });
    if (/^GET .*\/certificatesigningrequests\//.test(call))
      return json({ status: { certificate: Buffer.from('cert').toString('base64') } });
    if (/\/leases/.test(call)) return lease(call, body);
    if (url.searchParams.has('watch')) return { status: 200, body: watch() };
    if (call === 'GET /api/v1/pods') return json({ metadata: { resourceVersion: '1' }, items: [] });
    return json({ metadata: { uid: 'u1' }, status: {} });
  }

  function lease(call: string, body: unknown): ScriptedAnswer {
    if (call.startsWith('GET') && leases.size === 0) return status(404, 'not found');
    if (call.startsWith('POST')) leases.add('there');
    return json(body ?? { spec: {} });
  }

  async function* watch(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const event = events.shift();
      if (event === undefined)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      else yield new TextEncoder().encode(`${JSON.stringify(event)}\n`);
    }
  }

  return server;
}

export const refusal = status;
