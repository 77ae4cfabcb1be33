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
  close(): Promise<void>;
}

export async function startProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const pairs = new Set<readonly [Socket, Socket]>();
  let isBlocked = false;
  const server = createServer((near) => {
    if (isBlocked) return void near.destroy();
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
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
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
    close: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
