// SPDX-License-Identifier: Apache-2.0
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Unused ports of 127.0.0.1. All stay open until the last one is known, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports: number[] = [];
  for (const server of servers) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (typeof address === 'object' && address !== null) ports.push(address.port);
  }
  for (const server of servers) {
    server.close();
    await once(server, 'close');
  }
  return ports;
}
