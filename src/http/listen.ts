// SPDX-License-Identifier: Apache-2.0
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { InvalidConfig } from '../ports/errors.ts';

export interface Listening {
  /** The address it really listens on, also where port 0 was asked for. */
  readonly url: string;
  close(): Promise<void>;
}

export interface ListenAddress {
  /** Empty: every address of the machine. */
  readonly host: string;
  readonly port: number;
}

/** A slow or silent client must not hold a connection for ever. */
const REQUEST_TIMEOUT_MS = 10_000;

export async function listen(app: Hono, { host, port }: ListenAddress): Promise<Listening> {
  const answer = getRequestListener(app.fetch);
  const server = createServer((request, response) => void answer(request, response));
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  try {
    server.listen({ port, ...(host !== '' && { host }) });
    await once(server, 'listening');
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'failed';
    throw new InvalidConfig('CONFIG_INVALID', `cannot listen on ${host}:${port} (${code})`, {
      hint: 'Another process has the port, or the address is not of this machine: change http.health.',
      cause,
    });
  }
  return {
    url: urlOf(server.address()),
    async close() {
      server.close();
      server.closeAllConnections();
      if (server.listening) await once(server, 'close');
    },
  };
}

function urlOf(at: AddressInfo | string | null): string {
  if (at === null || typeof at === 'string') return '';
  const name = at.family === 'IPv6' ? `[${at.address}]` : at.address;
  return `http://${name}:${at.port}`;
}
