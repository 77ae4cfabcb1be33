// SPDX-License-Identifier: Apache-2.0
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { InvalidConfig } from '../ports/errors.ts';

export interface HttpListener {
  /** The actual address; contains the assigned port if port 0 was requested. */
  readonly url: string;
  close(): Promise<void>;
}

export interface ListenAddress {
  /** Empty: all addresses of the machine. */
  readonly host: string;
  readonly port: number;
}

/** Limits how long a slow or silent client can hold a connection. */
const REQUEST_TIMEOUT_MS = 10_000;

/** `setting` is the key of the config that the address comes from. */
export async function listen(
  app: Hono,
  { host, port }: ListenAddress,
  setting: string,
): Promise<HttpListener> {
  const handle = getRequestListener(app.fetch);
  const server = createServer((request, response) => void handle(request, response));
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.headersTimeout = REQUEST_TIMEOUT_MS;
  try {
    server.listen({ port, ...(host !== '' && { host }) });
    await once(server, 'listening');
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'failed';
    throw new InvalidConfig('CONFIG_INVALID', `cannot listen on ${host}:${port} (${code})`, {
      hint: `Change ${setting}: another process uses the port, or the address does not belong to this machine.`,
      cause,
    });
  }
  return {
    url: formatUrl(server.address()),
    async close() {
      server.close();
      server.closeAllConnections();
      if (server.listening) await once(server, 'close');
    },
  };
}

function formatUrl(at: AddressInfo | string | null): string {
  if (at === null || typeof at === 'string') return '';
  const name = at.family === 'IPv6' ? `[${at.address}]` : at.address;
  return `http://${name}:${at.port}`;
}
