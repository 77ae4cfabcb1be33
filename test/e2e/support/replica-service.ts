// SPDX-License-Identifier: Apache-2.0
// A Service in front of the gRPC ports of replicas: a new connection goes to a replica whose last readiness probe succeeded.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { systemClock } from '../../../src/system/index.ts';
import type { Replica } from './simulated-site.ts';

const PROBE_MS = 1_000;
/** A process that has ended refuses at once; one on a loaded machine is slow. */
const PROBE_TIMEOUT_MS = 5_000;

export interface ReplicaService {
  /** `127.0.0.1:PORT`. */
  readonly address: string;
  /** Takes the place of a replica of the same name. */
  add(replica: Replica): void;
  close(): Promise<void>;
}

export async function startReplicaService(): Promise<ReplicaService> {
  const replicas = new Map<string, Replica>();
  const ready = new Set<Replica>();
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((client) => {
    const targets = [...replicas.values()].filter((one) => ready.has(one));
    const target = targets[connections % Math.max(1, targets.length)];
    connections += 1;
    if (target === undefined) return void client.destroy();
    const [host = '', port = ''] = target.grpc.split(':');
    const upstream = connect(Number(port), host);
    const end = () => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket
        .on('error', end)
        .on('close', end)
        .on('close', () => sockets.delete(socket));
    }
    client.pipe(upstream);
    upstream.pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const closing = new AbortController();
  const probing = (async () => {
    while (!closing.signal.aborted) {
      for (const replica of replicas.values()) {
        const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
        const isReady = await fetch(`${replica.health}/readyz`, { signal }).then(
          ({ ok }) => ok,
          () => false,
        );
        if (isReady) ready.add(replica);
        else ready.delete(replica);
      }
      await systemClock.sleep(PROBE_MS, { signal: closing.signal }).catch(() => undefined);
    }
  })();
  const address = server.address();
  return {
    address: `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    add: (replica) => void replicas.set(replica.name, replica),
    close: async () => {
      closing.abort();
      await probing;
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
