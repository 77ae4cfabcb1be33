// SPDX-License-Identifier: Apache-2.0
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import {
  type PeerRequest,
  type PeerResponse,
  transportContract,
} from '../ports/contract/transport.contract.ts';
import { SkippableClock } from '../ports/fakes/skippable-clock.ts';
import { createHttpTransport } from './http-transport.ts';
import { systemClock } from './index.ts';

/** Longer than a connection may take, where no name server answers. */
const RESOLUTION_MS = 60_000;

type Peer = (request: PeerRequest) => PeerResponse;

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of request.setEncoding('utf8')) text += String(part);
  return text;
}

async function answer(peer: Peer, request: IncomingMessage, response: ServerResponse) {
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  );
  const body = await bodyOf(request);
  const reply = peer({ method: request.method ?? '', path: request.url ?? '', headers, body });
  if (reply === 'no response') return;
  if (reply === 'reset') {
    request.socket.destroy();
    return;
  }
  response.writeHead(reply.status, reply.reason ?? '', reply.headers);
  response.flushHeaders();
  for (const part of reply.parts ?? []) {
    response.write(part);
    await systemClock.sleep(1);
  }
  if (reply.unfinished !== true) response.end();
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}

function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

transportContract('http', () => {
  const servers: Server[] = [];
  const clock = new SkippableClock(systemClock);
  const transport = createHttpTransport({ clock });
  const serve = async (peer: Peer) => {
    const server = createServer((request, response) => void answer(peer, request, response));
    servers.push(server);
    return `http://127.0.0.1:${await listen(server)}`;
  };
  return Promise.resolve({
    transport,
    serve,
    closedPort: async () => {
      const server = createServer();
      const port = await listen(server);
      await stop(server);
      return `http://127.0.0.1:${port}`;
    },
    advance: async (ms: number) => clock.skip(ms),
    cleanup: async () => {
      await transport.close();
      await Promise.all(servers.map(stop));
    },
  });
});

describe('createHttpTransport', () => {
  it('reports an unreachable peer with the configured code', async () => {
    const transport = createHttpTransport({ unreachable: 'KUBERNETES_UNREACHABLE' });
    const url = 'https://no-such-host.invalid:6443/';
    const request = { method: 'GET', url, timeoutMs: RESOLUTION_MS } as const;
    await expect(transport.request(request)).rejects.toMatchObject({
      code: 'KUBERNETES_UNREACHABLE',
    });
    await transport.close();
  });
});

describe('name resolution', () => {
  it('rejects with Unreachable for a host name that does not exist', async () => {
    const transport = createHttpTransport();
    await expect(
      transport.request({
        method: 'POST',
        url: 'https://no-such-host.invalid:8006/',
        body: 'x',
        timeoutMs: RESOLUTION_MS,
      }),
    ).rejects.toMatchObject({ class: 'Unreachable', facts: { requestSent: false } });
    await transport.close();
  });
});
