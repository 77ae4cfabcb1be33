// SPDX-License-Identifier: Apache-2.0
// An in-process fake of the API server calls that a joining node makes. Accepts every request unless overridden.
import { createHash } from 'node:crypto';
import { Unreachable } from '../../../../ports/errors.ts';
import {
  type RecordedRequest,
  type ScriptedResponse,
  ScriptedTransport,
} from '../../../../ports/fakes/scripted-transport.ts';
import type { OpenConnection, ServerTrust } from '../kubelet/server-api.ts';

const CA = '-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n';
export const CA_PREFIX = `K10${createHash('sha256').update(CA).digest('hex')}::`;

type OverrideAnswer = ScriptedResponse | undefined;

export interface FakeApiServer {
  readonly connect: OpenConnection;
  readonly trusts: ServerTrust[];
  /** `METHOD /path` of each request, in order. */
  readonly calls: string[];
  readonly bodies: Map<string, unknown>;
  isDown: boolean;
  /** Replaces the response to a call; undefined = default response. */
  override: (call: string) => OverrideAnswer;
  /** Sends one event on the pod watch. */
  sendPodEvent(type: string, pod: unknown): void;
}

const jsonAnswer = (body: unknown, status = 200): ScriptedResponse => ({
  status,
  body: JSON.stringify(body),
});
export const statusAnswer = (code: number, message: string) =>
  jsonAnswer({ kind: 'Status', message }, code);

export function createFakeApiServer(): FakeApiServer {
  const events: unknown[] = [];
  let wake: () => void = () => undefined;
  const server: FakeApiServer = {
    connect: (trust) => {
      server.trusts.push(trust);
      return Promise.resolve(new ScriptedTransport(answer));
    },
    trusts: [],
    calls: [],
    bodies: new Map(),
    isDown: false,
    override: () => undefined,
    sendPodEvent: (type, object) => {
      events.push({ type, object });
      wake();
    },
  };
  const leases = new Set<string>();

  function answer(request: RecordedRequest): ScriptedResponse {
    const call = `${request.method} ${request.url.pathname}`;
    if (server.isDown) throw new Unreachable('KUBERNETES_UNREACHABLE', 'connection refused');
    server.calls.push(
      request.url.searchParams.has('watch') ? `WATCH ${request.url.pathname}` : call,
    );
    const body: unknown = request.text === '' ? undefined : JSON.parse(request.text);
    if (body !== undefined) server.bodies.set(call, body);
    return server.override(call) ?? defaultResponse(request.url, call, body);
  }

  function defaultResponse(url: URL, call: string, body: unknown): ScriptedResponse {
    if (call === 'GET /cacerts') return { status: 200, body: CA };
    if (call.endsWith('/apiservers')) return jsonAnswer(['api.example:6443']);
    if (/^POST .*\/certificatesigningrequests$/.test(call))
      return jsonAnswer({ metadata: { name: 'csr' } });
    if (/^GET .*\/certificatesigningrequests\//.test(call))
      return jsonAnswer({ status: { certificate: Buffer.from('cert').toString('base64') } });
    if (/\/leases/.test(call)) return lease(call, body);
    if (url.searchParams.has('watch')) return { status: 200, body: watch() };
    if (call === 'GET /api/v1/pods')
      return jsonAnswer({ metadata: { resourceVersion: '1' }, items: [] });
    return jsonAnswer({ metadata: { uid: 'u1' }, status: {} });
  }

  function lease(call: string, body: unknown): ScriptedResponse {
    if (call.startsWith('GET') && leases.size === 0) return statusAnswer(404, 'not found');
    if (call.startsWith('POST')) leases.add('created');
    return jsonAnswer(body ?? { spec: {} });
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
