// SPDX-License-Identifier: Apache-2.0
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { KubernetesSim } from './sim.ts';

export interface ServedKubernetes {
  readonly url: string;
  close(): Promise<void>;
}

/** Listens on loopback without TLS. Port 0 selects a free port. */
export async function serveKubernetes(sim: KubernetesSim, port = 0): Promise<ServedKubernetes> {
  const server = createAdaptorServer({ fetch: (request) => sim.fetch(request) });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => resolve());
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server listens on TCP, not on a pipe
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}
