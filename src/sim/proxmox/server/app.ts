// SPDX-License-Identifier: Apache-2.0
// The Hono app of a simulated cluster. It writes to the Node response directly: Proxmox puts messages into the
// reason phrase, and a fetch `Response` loses it.
import { Buffer } from 'node:buffer';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { Hono } from 'hono';
import { SimConnectionError, type SimResponse } from '../http/messages.ts';
import type { ProxmoxSim } from '../sim.ts';

const MAX_HEADER_LINES = 64;
const MAX_HEADER_BYTES = 8 * 1024;

type App = Hono<{ Bindings: HttpBindings }>;

/** Routes every path and method to the simulator, which also sends the errors. */
export function createProxmoxApp(sim: ProxmoxSim, host: string | undefined): App {
  const app: App = new Hono();
  app.all('*', async ({ env }) => {
    await handleExchange(sim, host, env);
    return RESPONSE_ALREADY_SENT;
  });
  return app;
}

/** Redirects plain HTTP requests on the TLS port to https. */
export function createRedirectApp(): App {
  const app: App = new Hono();
  app.all('*', (context) => {
    const { headers, method, url } = context.env.incoming;
    const location = `https://${headers.host ?? 'localhost'}${url ?? '/'}`;
    return context.body(null, method === 'GET' ? 301 : 308, { location, connection: 'close' });
  });
  return app;
}

/** `onInvalidUrl` handles request lines that are no valid URL: Proxmox accepts them, the Hono adapter does not. */
export function createRequestListener(
  app: App,
  onInvalidUrl: (exchange: HttpBindings) => Promise<void>,
): RequestListener {
  return (incoming, outgoing) => {
    const listener = getRequestListener(app.fetch, {
      hostname: 'localhost',
      overrideGlobalObjects: false,
      errorHandler: () => onInvalidUrl({ incoming, outgoing }),
    });
    void listener(incoming, outgoing);
  };
}

/** Connections over which a request was answered. */
const usedSockets = new WeakSet<object>();

export async function handleExchange(
  sim: ProxmoxSim,
  host: string | undefined,
  { incoming, outgoing }: HttpBindings,
): Promise<void> {
  const headers = joinHeaders(incoming);
  // Proxmox stops reading there and sends nothing.
  if (exceedsHeaderLimits(incoming)) return void incoming.socket.destroy();
  try {
    // A chunked body is refused without reading it.
    const body = headers['transfer-encoding'] === undefined ? await readBody(incoming) : undefined;
    const result = await sim.handle({
      method: incoming.method ?? 'GET',
      target: incoming.url ?? '/',
      headers,
      body,
      isConnectionReused: usedSockets.has(incoming.socket),
      ...(host === undefined ? {} : { host }),
    });
    usedSockets.add(incoming.socket);
    sendResponse(outgoing, result);
  } catch (error) {
    if (!(error instanceof SimConnectionError)) {
      outgoing.destroy(error instanceof Error ? error : undefined);
    }
    incoming.socket.destroy();
  }
}

/** Proxmox counts the empty line at the end of the headers, too. */
function exceedsHeaderLimits({ rawHeaders }: IncomingMessage): boolean {
  const lines = rawHeaders.length / 2 + 1;
  // Each line has two more characters between name and value.
  const bytes = rawHeaders.reduce((sum, text) => sum + text.length, 0) + rawHeaders.length;
  return lines >= MAX_HEADER_LINES || bytes >= MAX_HEADER_BYTES;
}

function joinHeaders(message: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(message.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join('; ') : value;
  }
  return headers;
}

export async function readBody(message: IncomingMessage): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of message) if (chunk instanceof Uint8Array) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function sendResponse(response: ServerResponse, result: SimResponse): void {
  const body = Buffer.from(result.body, 'utf8');
  response.sendDate = true;
  // Like Proxmox, sends non-ASCII characters of the reason phrase as UTF-8 bytes.
  const reason = Buffer.from(result.reason, 'utf8').toString('latin1');
  response.writeHead(result.status, reason, {
    ...result.headers,
    server: 'pve-api-daemon/3.0',
    'cache-control': 'max-age=0',
    pragma: 'no-cache',
    'content-length': body.length,
    ...(result.status >= 400 ? { connection: 'close' } : {}),
  });
  response.end(body);
}
