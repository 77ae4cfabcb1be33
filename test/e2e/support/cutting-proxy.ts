// SPDX-License-Identifier: Apache-2.0
// A wire that can be cut: bytes to and from a server on loopback, until somebody says otherwise. TLS passes through, so
// neither end knows.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface CuttingProxy {
  /** `https://127.0.0.1:PORT`. */
  readonly url: string;
  /** How many connections are open. */
  readonly open: number;
  /** Ends every connection in the middle of whatever it says; how many there were. */
  cut(): number;
  /** From now on nobody gets through; those who are through already are cut. */
  block(): void;
  unblock(): void;
  /** Nobody listens any more, and those who are through are cut; again with the call that comes back. */
  refuse(): Promise<() => Promise<void>>;
  /** Everybody is taken in, and no byte passes, also of those who are through; those end with the call that comes back. */
  hang(): () => void;
  close(): Promise<void>;
}

export async function startProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  const stuck = new Set<Socket>();
  let isBlocked = false;
  let isHanging = false;
  const server = createServer((near) => {
    if (isBlocked) return void near.destroy();
    if (isHanging) {
      stuck.add(near.on('error', () => near.destroy()).on('close', () => stuck.delete(near)));
      return;
    }
    const far = connect(Number(port), hostname);
    const pair = [near, far] as const;
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of pair) socket.on('error', end).on('close', end);
    near.pipe(far);
    far.pipe(near);
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
    // A reset, as from a router that forgot the connection.
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
      for (const [near, far] of pairs) {
        near.unpipe(far).pause();
        far.unpipe(near).pause();
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
