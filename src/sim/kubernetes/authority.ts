// SPDX-License-Identifier: Apache-2.0
// The certificate authority of a simulated cluster: it signs the server's certificate and those of joining nodes.
import { generateKeyPairSync } from 'node:crypto';
import { extensions, signCertificate } from '../x509/certificate.ts';
import { readCertificateRequest } from '../x509/certificate-request.ts';
import type { ClusterAuthority } from './controllers/controller.ts';

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const ISSUER = { commonName: 'kubernetes' };

export interface SimAuthority extends ClusterAuthority {
  /** A server certificate for these host names and addresses. */
  server(names: readonly string[]): { readonly cert: string; readonly key: string };
}

export function createAuthority(): SimAuthority {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issued = { issuer: ISSUER, signWith: privateKey };
  return {
    certPem: signCertificate({
      ...issued,
      subject: ISSUER,
      publicKey,
      extensions: [extensions.certificateSigning(), extensions.authority()],
    }),
    sign: (requestPem) =>
      signCertificate({
        ...issued,
        ...readCertificateRequest(requestPem),
        extensions: [extensions.connectionKeys(), extensions.purposes([CLIENT_AUTH])],
      }),
    server: (names) => {
      const own = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const cert = signCertificate({
        ...issued,
        subject: { commonName: 'kube-apiserver' },
        publicKey: own.publicKey,
        extensions: [
          extensions.connectionKeys(),
          extensions.purposes([SERVER_AUTH]),
          extensions.names(names),
        ],
      });
      return { cert, key: String(own.privateKey.export({ type: 'pkcs8', format: 'pem' })) };
    },
  };
}
