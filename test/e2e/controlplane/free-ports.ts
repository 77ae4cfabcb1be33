// SPDX-License-Identifier: Apache-2.0
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Below the ports that Linux gives to connections: one of those could get the port before its program listens. */
const FIRST = 15_000;
const END = 32_768;
const MAX_ATTEMPTS = 100;

/** Unused ports of 127.0.0.1. All stay open until the last one is known, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const open: { readonly port: number; readonly server: Server }[] = [];
  for (let attempt = 0; open.length < count && attempt < count + MAX_ATTEMPTS; attempt += 1) {
    const port = randomInt(FIRST, END);
    const server = createServer();
    const listening = once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.listen(port, '127.0.0.1');
    if (await listening) open.push({ port, server });
  }
  for (const { server } of open) {
    server.close();
    await once(server, 'close');
  }
  if (open.length < count) throw new Error(`${count} free ports were not found`);
  return open.map(({ port }) => port);
}
