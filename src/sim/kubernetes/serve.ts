// SPDX-License-Identifier: Apache-2.0
// The simulator on the network: plain HTTP for tests, HTTPS with client certificates for `pvescaler sim kubernetes`.
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import type { User } from './http/authentication.ts';
import type { KubernetesSim } from './sim.ts';

export interface ServedKubernetes {
  readonly url: string;
  close(): Promise<void>;
}

export interface ServerOptions {
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  readonly tls?: { readonly cert: string; readonly key: string; readonly caPem: string };
  /** Called for each request; the simulator may be created after the port is known. */
  readonly sim: () => Pick<KubernetesSim, 'fetch'>;
}

/** The 5 s of Node close connections that clients of a real API server use again. */
const KEEP_ALIVE_MS = 180_000;

/** Listens on loopback without TLS. Port 0 selects a free port. */
export function serveKubernetes(sim: KubernetesSim, port = 0): Promise<ServedKubernetes> {
  return listen({ host: '127.0.0.1', port, sim: () => sim });
}

export async function listen({ host, port, tls, sim }: ServerOptions): Promise<ServedKubernetes> {
  const respond = (request: Request, env: unknown) => {
    const certificateUser = readCertificateUser(env);
    return sim().fetch(request, certificateUser && { certificateUser });
  };
  const server = createAdaptorServer({
    fetch: respond,
    ...(tls && {
      createServer,
      serverOptions: {
        cert: tls.cert,
        key: tls.key,
        ca: tls.caPem,
        requestCert: true,
        rejectUnauthorized: false,
      },
    }),
  });
  if ('keepAliveTimeout' in server) server.keepAliveTimeout = KEEP_ALIVE_MS;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => resolve());
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server listens on TCP, not on a pipe
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}

/** The user of a client certificate that the cluster's authority has signed. */
function readCertificateUser(env: unknown): User | undefined {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the server adapter passes
  const socket = (env as Partial<HttpBindings> | undefined)?.incoming?.socket;
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const { CN, O } = socket.getPeerCertificate().subject;
  const texts = (value: unknown) => [value].flat().filter((one) => typeof one === 'string');
  return { username: texts(CN)[0] ?? '', groups: texts(O) };
}
