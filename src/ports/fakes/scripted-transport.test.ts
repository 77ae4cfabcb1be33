// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  type PeerAnswer,
  type PeerRequest,
  transportContract,
} from '../contract/transport.contract.ts';
import { Unreachable } from '../errors.ts';
import {
  type RecordedRequest,
  type ScriptedAnswer,
  ScriptedTransport,
} from './scripted-transport.ts';
import { VirtualClock } from './virtual-clock.ts';

function unreachable(requestSent: boolean): Unreachable {
  return new Unreachable('PVE_UNREACHABLE', 'cut', { facts: { requestSent } });
}

function seen(request: RecordedRequest): PeerRequest {
  return {
    method: request.method,
    path: `${request.url.pathname}${request.url.search}`,
    headers: request.headers,
    body: request.text,
  };
}

function scripted(answer: PeerAnswer): ScriptedAnswer | Promise<ScriptedAnswer> {
  if (answer === 'silence') return new Promise(() => undefined);
  if (answer === 'reset') throw unreachable(true);
  const { parts = [], unfinished = false, ...head } = answer;
  const encoder = new TextEncoder();
  async function* body() {
    for (const part of parts) yield encoder.encode(part);
    if (unfinished) await new Promise(() => undefined);
  }
  return { ...head, body: body() };
}

transportContract('scripted', () => {
  const clock = new VirtualClock();
  const peers = new Map<string, (request: PeerRequest) => PeerAnswer>();
  const transport = new ScriptedTransport(
    (request) => {
      const peer = peers.get(request.url.host);
      if (peer === undefined) throw unreachable(false);
      return scripted(peer(seen(request)));
    },
    { clock },
  );
  return Promise.resolve({
    transport,
    serve: (peer: (request: PeerRequest) => PeerAnswer) => {
      const host = `peer-${peers.size}.example`;
      peers.set(host, peer);
      return Promise.resolve(`https://${host}`);
    },
    nobody: () => Promise.resolve('https://nobody.example'),
    pass: (ms: number) => clock.advance(ms),
    cleanup: () => transport.close(),
  });
});

describe('ScriptedTransport', () => {
  it('records requests and changes its peer when told', async () => {
    const transport = new ScriptedTransport(() => ({ status: 200 }));
    await transport.request({ method: 'GET', url: 'https://a.example/x?y=1', headTimeoutMs: 1 });
    transport.answerWith(() => ({ status: 501 }));
    const answer = await transport.request({
      method: 'PUT',
      url: 'https://a.example/',
      body: 'z',
      headTimeoutMs: 1,
    });
    expect(answer.status).toBe(501);
    expect(transport.requests.map((r) => [r.method, r.url.pathname, r.text])).toEqual([
      ['GET', '/x', ''],
      ['PUT', '/', 'z'],
    ]);
  });
});
