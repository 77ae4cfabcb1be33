// SPDX-License-Identifier: Apache-2.0
// The part of a k3s or RKE2 server that a joining agent calls before it knows the API server: the public CA bundle, which
// the token pins, and the addresses of the API servers. Node certificates are signed by the cluster's own signer.
import { createServer, type Server } from 'node:https';
import type { KeyAndCertificate } from './certificate-authority.ts';
import { LOOPBACK } from './settings.ts';

export interface Supervisor {
  readonly url: string;
  close(): Promise<void>;
}

export async function startSupervisor(
  identity: KeyAndCertificate,
  facts: { readonly caPem: string; readonly apiServer: string },
): Promise<Supervisor> {
  const answers: Readonly<Record<string, string>> = {
    '/cacerts': facts.caPem,
    '/ping': 'pong',
    '/v1-k3s/apiservers': JSON.stringify([new URL(facts.apiServer).host]),
    '/v1-rke2/apiservers': JSON.stringify([new URL(facts.apiServer).host]),
  };
  const server = createServer({ cert: identity.certPem, key: identity.keyPem }, (call, answer) => {
    const text = answers[call.url ?? ''];
    answer.writeHead(text === undefined ? 404 : 200, { connection: 'close' });
    answer.end(text ?? '404 page not found');
  });
  return { url: `https://${LOOPBACK}:${await listen(server)}`, close: () => closeAll(server) };
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, LOOPBACK, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
}

function closeAll(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
