// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  type PeerRequest,
  type PeerResponse,
  transportContract,
} from '../contract/transport.contract.ts';
import { Unreachable } from '../errors.ts';
import {
  type RecordedRequest,
  type ScriptedResponse,
  ScriptedTransport,
} from './scripted-transport.ts';
import { VirtualClock } from './virtual-clock.ts';

function unreachable(requestSent: boolean): Unreachable {
  return new Unreachable('PVE_UNREACHABLE', 'connection reset', { facts: { requestSent } });
}

function toPeerRequest(request: RecordedRequest): PeerRequest {
  return {
    method: request.method,
    path: `${request.url.pathname}${request.url.search}`,
    headers: request.headers,
    body: request.text,
  };
}

function toScriptedResponse(response: PeerResponse): ScriptedResponse | Promise<ScriptedResponse> {
  if (response === 'no response') return new Promise(() => undefined);
  if (response === 'reset') throw unreachable(true);
  const { parts = [], unfinished = false, ...head } = response;
  const encoder = new TextEncoder();
  async function* body() {
    for (const part of parts) yield encoder.encode(part);
    if (unfinished) await new Promise(() => undefined);
  }
  return { ...head, body: body() };
}

transportContract('scripted', () => {
  const clock = new VirtualClock();
  const peers = new Map<string, (request: PeerRequest) => PeerResponse>();
  const transport = new ScriptedTransport(
    (request) => {
      const peer = peers.get(request.url.host);
      if (peer === undefined) throw unreachable(false);
      return toScriptedResponse(peer(toPeerRequest(request)));
    },
    { clock },
  );
  return Promise.resolve({
    transport,
    serve: (peer: (request: PeerRequest) => PeerResponse) => {
      const host = `peer-${peers.size}.example`;
      peers.set(host, peer);
      return Promise.resolve(`https://${host}`);
    },
    closedPort: () => Promise.resolve('https://closed.example'),
    advance: (ms: number) => clock.advance(ms),
    cleanup: () => transport.close(),
  });
});

describe('ScriptedTransport', () => {
  it('records requests and can replace its peer', async () => {
    const transport = new ScriptedTransport(() => ({ status: 200 }));
    await transport.request({ method: 'GET', url: 'https://a.example/x?y=1', timeoutMs: 1 });
    transport.respondWith(() => ({ status: 501 }));
    const response = await transport.request({
      method: 'PUT',
      url: 'https://a.example/',
      body: 'z',
      timeoutMs: 1,
    });
    expect(response.status).toBe(501);
    expect(transport.requests.map((r) => [r.method, r.url.pathname, r.text])).toEqual([
      ['GET', '/x', ''],
      ['PUT', '/', 'z'],
    ]);
  });

  it('handles a failure of the peer after the caller has aborted', async () => {
    const transport = new ScriptedTransport(() => Promise.reject(unreachable(true)));
    const caller = new AbortController();
    const request = { method: 'GET', url: 'https://a.example/', timeoutMs: 1 } as const;
    const response = transport.request({ ...request, signal: caller.signal });
    caller.abort();
    await expect(response).rejects.toMatchObject({ code: 'CANCELLED' });
  });
});
