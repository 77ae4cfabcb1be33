// SPDX-License-Identifier: Apache-2.0
// Peers that stop in the middle of an exchange, over real sockets. Time is virtual: each test first waits for the bytes
// that the peer did send, then lets the limit pass.
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { KubernetesCluster } from '../../src/kubernetes/index.ts';
import type { PvescalerError } from '../../src/ports/errors.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { TransportRequest } from '../../src/ports/transport.ts';
import { createProxmoxHypervisor } from '../../src/proxmox/index.ts';
import { openHttpTransport, readUrl } from '../../src/system/index.ts';
import { CREDENTIALS } from '../proxmox/simulated-region.ts';

const LIMIT_MS = 35_000;
const HALF_ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"data":[';

const servers: Server[] = [];
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  for (const server of servers.splice(0)) await new Promise((done) => server.close(done));
});

/** Listens on loopback. Returns the base URL and the socket of the first connection. */
async function listen(options: { readonly pauseOnConnect?: boolean } = {}) {
  const server = createServer(options, (socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  const connected = once(server, 'connection').then(([socket]: unknown[]) => socket as Socket);
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return { url: `http://127.0.0.1:${port}`, connected };
}

async function open() {
  const clock = new VirtualClock();
  const transport = await openHttpTransport({ clock });
  const send = (url: string, extra: Partial<TransportRequest> = {}) =>
    transport.request({ method: 'GET', url, timeoutMs: LIMIT_MS, ...extra });
  return { clock, send };
}

/** Answers the first request with `text` and keeps the connection open. */
async function answer(connected: Promise<Socket>, text: string): Promise<Socket> {
  const socket = await connected;
  await once(socket, 'data');
  socket.write(text);
  return socket;
}

describe('an exchange that stalls', () => {
  it('is rejected at the limit after half of a body', async () => {
    const { clock, send } = await open();
    const { url, connected } = await listen();
    void answer(connected, HALF_ANSWER);
    const response = await send(`${url}/api2/json/cluster/resources?type=vm`);
    const parts = response.body[Symbol.asyncIterator]();
    await parts.next();
    const rejection = expect(parts.next()).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      message: `${url}: the answer of GET /api2/json/cluster/resources stalled after 9 bytes for 35 s; the limit for the whole exchange is 35 s`,
      facts: { requestSent: true },
    });
    await clock.advance(LIMIT_MS);
    await rejection;
    const socket = await connected;
    if (!socket.closed) await once(socket, 'close');
  });

  it('is rejected at the limit although one byte arrives per second', async () => {
    const { clock, send } = await open();
    const { url, connected } = await listen();
    const socket = answer(connected, HALF_ANSWER);
    const response = await send(`${url}/x`);
    const parts = response.body[Symbol.asyncIterator]();
    await parts.next();
    for (let second = 1; second < LIMIT_MS / 1_000; second += 1) {
      await clock.advance(1_000);
      (await socket).write('1');
      expect((await parts.next()).value).toHaveLength(1);
    }
    const rejection = expect(parts.next()).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      message: expect.stringContaining('GET /x stalled after 43 bytes for 1 s'),
    });
    await clock.advance(1_000);
    await rejection;
  });

  it('is rejected at the limit without any byte of an answer', async () => {
    const { clock, send } = await open();
    const { url, connected } = await listen();
    const rejection = expect(send(`${url}/x`)).rejects.toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      message: `${url}: no answer to GET /x for 35 s; the limit for the whole exchange is 35 s`,
      facts: { requestSent: true },
    });
    await once(await connected, 'data');
    await clock.advance(LIMIT_MS);
    await rejection;
  });

  it('is rejected at the limit when the peer does not read the uploaded body', async () => {
    const { clock, send } = await open();
    const { url, connected } = await listen({ pauseOnConnect: true });
    const chunk = new Uint8Array(2 ** 20);
    let isBlocked = () => undefined as void;
    const blocked = new Promise<void>((resolve) => {
      isBlocked = resolve;
    });
    const body = {
      byteLength: 64 * chunk.length,
      async *open() {
        yield chunk;
        isBlocked();
        for (let sent = 1; sent < 64; sent += 1) yield chunk;
      },
    };
    const rejection = expect(send(`${url}/upload`, { method: 'POST', body })).rejects.toMatchObject(
      {
        code: 'REQUEST_TIMED_OUT',
        message: expect.stringMatching(
          /the request POST \/upload stalled after \d+ of 67108864 bytes for 35 s/,
        ),
        facts: { requestSent: true },
      },
    );
    await connected;
    await blocked;
    await clock.advance(LIMIT_MS);
    await rejection;
  });

  it('is not rejected after the whole body arrived, however late it is read', async () => {
    const { clock, send } = await open();
    const { url, connected } = await listen();
    void answer(connected, 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
    const response = await send(url);
    const parts = response.body[Symbol.asyncIterator]();
    expect((await parts.next()).value).toHaveLength(2);
    expect(clock.sleeping).toBe(0);
  });
});

describe('readUrl', () => {
  it('rejects when the list of checksums stalls', async () => {
    const clock = new VirtualClock();
    const { url, connected } = await listen();
    const reading = readUrl(`${url}/SHA256SUMS`, { clock });
    const rejection = expect(reading).rejects.toMatchObject({ code: 'REQUEST_TIMED_OUT' });
    await answer(connected, HALF_ANSWER);
    await clock.advance(30_000);
    await rejection;
  });
});

describe('the Proxmox client', () => {
  it('uses the next endpoint when the answer of one stalls', async () => {
    const clock = new VirtualClock();
    const [stalled, healthy] = [await listen(), await listen()];
    const hypervisor = createProxmoxHypervisor({
      region: 'home',
      endpoints: [stalled.url, healthy.url],
      credentials: CREDENTIALS,
      transport: await openHttpTransport({ clock }),
      clock,
      random: new SeededRandom(1),
    });
    const reading = hypervisor.volumes('pve1', 'local', 'iso');
    await answer(stalled.connected, HALF_ANSWER);
    await clock.advance(LIMIT_MS);
    await answer(healthy.connected, 'HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"data":[]}');
    expect(await reading).toEqual([]);
    await hypervisor.close();
  });
});

describe('the Kubernetes client', () => {
  it('reports a list whose answer stalls', async () => {
    const clock = new VirtualClock();
    const { url, connected } = await listen();
    const { promise: reported, resolve: onError } = Promise.withResolvers<PvescalerError>();
    const cluster = new KubernetesCluster({
      transport: await openHttpTransport({ clock, unreachable: 'KUBERNETES_UNREACHABLE' }),
      server: url,
      caPem: undefined,
      clock,
      random: new SeededRandom(1),
      watch: 'nodes',
      onError,
    });
    await answer(connected, HALF_ANSWER);
    await clock.advance(15_000);
    expect(await reported).toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      message: expect.stringMatching(/ \/api\/v1\/nodes .*for 15 s/),
    });
    await cluster.close();
  });
});
