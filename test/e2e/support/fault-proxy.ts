// SPDX-License-Identifier: Apache-2.0
// A TCP proxy in front of a server on loopback, whose connections a test can cut, refuse or hang. TLS passes through
// unchanged.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface FaultProxy {
  /** `https://127.0.0.1:PORT`. */
  readonly url: string;
  /** Number of open connections. */
  readonly open: number;
  /** Resets every connection; returns how many there were. */
  cut(): number;
  /** Resets every connection and closes new ones immediately. */
  block(): void;
  unblock(): void;
  /** Stops listening and resets every connection; the returned function listens again. */
  refuse(): Promise<() => Promise<void>>;
  /** Accepts connections but forwards no byte; the returned function resets them and forwards again. */
  hang(): () => void;
  close(): Promise<void>;
}

export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const { hostname, port } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  const stuck = new Set<Socket>();
  let isBlocked = false;
  let isHanging = false;
  const server = createServer((client) => {
    if (isBlocked) return void client.destroy();
    if (isHanging) {
      stuck.add(client.on('error', () => client.destroy()).on('close', () => stuck.delete(client)));
      return;
    }
    const upstream = connect(Number(port), hostname);
    const pair = [client, upstream] as const;
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end);
    client.pipe(upstream);
    upstream.pipe(client);
  });
  const listen = async (at: number) => {
    server.listen(at, '127.0.0.1');
    await once(server, 'listening');
  };
  await listen(0);
  const address = server.address();
  const ownPort = typeof address === 'object' && address !== null ? address.port : 0;
  const cut = () => {
    const count = pairs.size;
    // A reset, as from a router that lost its connection table.
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
    return count;
  };
  return {
    url: `https://127.0.0.1:${ownPort}`,
    get open() {
      return pairs.size;
    },
    cut,
    block: () => {
      isBlocked = true;
      cut();
    },
    unblock: () => {
      isBlocked = false;
    },
    refuse: async () => {
      server.close();
      cut();
      await once(server, 'close');
      return () => listen(ownPort);
    },
    hang: () => {
      isHanging = true;
      for (const [client, upstream] of pairs) {
        client.unpipe(upstream).pause();
        upstream.unpipe(client).pause();
      }
      return () => {
        isHanging = false;
        cut();
        for (const socket of stuck) socket.destroy();
      };
    },
    close: async () => {
      for (const socket of stuck) socket.destroy();
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
