// SPDX-License-Identifier: Apache-2.0
// Serves a simulated cluster on a socket, over HTTP or TLS.
import type { Buffer } from 'node:buffer';
import { createServer, get as getPlain, type Server } from 'node:http';
import { createServer as createTlsServer, get as getTls } from 'node:https';
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net';
import type { UrlSource } from '../core.ts';
import type { ProxmoxSim } from '../sim.ts';
import {
  createProxmoxApp,
  createRedirectApp,
  createRequestListener,
  handleExchange,
  readBody,
} from './app.ts';
import { makeCertificate } from './certificate.ts';

export interface ServeOptions {
  /** `HOST:PORT`; port 0 = any free one. */
  readonly listen: string;
  /** True = a generated certificate; or the given one. */
  readonly tls?: boolean | { readonly cert: string; readonly key: string };
  /** The simulated host behind this address; absent = the first one. */
  readonly host?: string;
}

export interface ServedSim {
  readonly url: string;
  /** SHA-256 of the certificate; undefined without TLS. */
  readonly fingerprint: string | undefined;
  close(): Promise<void>;
}

const IDLE_MS = 5_000;
const MAX_REQUESTS_PER_CONNECTION = 100;
const TLS_HANDSHAKE = 0x16;

function parseListenAddress(listen: string): { readonly host: string; readonly port: number } {
  const at = listen.lastIndexOf(':');
  const host = listen.slice(0, Math.max(0, at)).replace(/^\[(.*)\]$/, '$1');
  return { host: host === '' ? '127.0.0.1' : host, port: Number(listen.slice(at + 1)) };
}

function routeByFirstByte(secure: Server, plain: Server): (socket: Socket) => void {
  return (socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (first: Buffer) => {
      socket.pause();
      socket.unshift(first);
      if (first[0] === TLS_HANDSHAKE) {
        // The TLS layer reads the buffered bytes itself; resuming the socket would lose them.
        secure.emit('connection', socket);
      } else {
        plain.emit('connection', socket);
        socket.resume();
      }
    });
  };
}

function withConnectionLimits<T extends Server>(server: T): T {
  server.keepAliveTimeout = IDLE_MS;
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION;
  return server;
}

interface Listener {
  readonly listen: (port: number, host: string, done: () => void) => unknown;
  readonly address: () => AddressInfo | string | null;
  readonly close: (done: () => void) => unknown;
  readonly once: (event: 'error', listener: (error: Error) => void) => unknown;
}

async function listenOn(
  server: Listener,
  at: { readonly host: string; readonly port: number },
): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at.port, at.host, resolve);
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : at.port;
}

export async function serveProxmoxSim(sim: ProxmoxSim, options: ServeOptions): Promise<ServedSim> {
  const at = parseListenAddress(options.listen);
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  const onRequest = createRequestListener(createProxmoxApp(sim, options.host), (exchange) =>
    handleExchange(sim, options.host, exchange),
  );
  const close = (server: Listener) => async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
  };
  if (options.tls === undefined || options.tls === false) {
    const server = withConnectionLimits(createServer(onRequest));
    server.on('connection', track);
    const port = await listenOn(server, at);
    return { url: `http://${at.host}:${port}`, fingerprint: undefined, close: close(server) };
  }
  const names = [...new Set([at.host, 'localhost', '127.0.0.1'])];
  const generated = options.tls === true ? makeCertificate(names) : undefined;
  const secure = withConnectionLimits(
    createTlsServer(generated ?? (options.tls === true ? {} : options.tls), onRequest),
  );
  const plain = createServer(
    createRequestListener(createRedirectApp(), ({ outgoing }) => {
      outgoing.writeHead(400, { connection: 'close' }).end();
      return Promise.resolve();
    }),
  );
  const server = createSocketServer(routeByFirstByte(secure, plain));
  server.on('connection', track);
  const port = await listenOn(server, at);
  return {
    url: `https://${at.host}:${port}`,
    fingerprint: generated?.fingerprint,
    close: close(server),
  };
}

/** Downloads over the real network, for images on a fixture server. */
export function networkUrlSource(): UrlSource {
  return (url) =>
    new Promise((resolve) => {
      const get = url.startsWith('https:') ? getTls : getPlain;
      const request = get(url, (response) => {
        readBody(response).then(
          (bytes) =>
            resolve({
              url,
              status: response.statusCode ?? 500,
              size: bytes.length,
              bytes,
              ...(response.headers['content-type'] === undefined
                ? {}
                : { type: response.headers['content-type'] }),
            }),
          () => resolve(undefined),
        );
      });
      request.on('error', () => resolve(undefined));
    });
}
