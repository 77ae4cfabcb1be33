// SPDX-License-Identifier: Apache-2.0
// The certificate authority of one control plane: it signs server and client certificates. The controller manager uses
// its key to sign the certificates of joining nodes.
import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { x509 } from '../../../src/sim/proxmox/index.ts';

const { extensions, signCertificate } = x509;

export interface KeyAndCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';

export interface Authority extends KeyAndCertificate {
  /** `sha256:…` of the public key, as kubeadm pins it. */
  readonly publicKeyHash: string;
  server(): KeyAndCertificate;
  client(subject: x509.Subject): KeyAndCertificate;
}

export function generateKeyPair(): {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
} {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

export function encodeKeyPem(key: KeyObject): string {
  // Every Kubernetes program reads the RFC 5915 format.
  return String(key.export({ type: 'sec1', format: 'pem' }));
}

/** Subject alternative names: 127.0.0.1 and the names that pods use. */
const SERVER_NAMES = [
  '127.0.0.1',
  '10.96.0.1',
  'localhost',
  'kubernetes',
  'kubernetes.default.svc',
];

/** The server certificates have the other names too. */
export function createAuthority(commonName: string, otherNames: readonly string[] = []): Authority {
  const { publicKey, privateKey } = generateKeyPair();
  const issuer = { commonName };
  const issue = (subject: x509.Subject, purpose: string, names: readonly string[] = []) => {
    const own = generateKeyPair();
    const certPem = signCertificate({
      subject,
      issuer,
      publicKey: own.publicKey,
      signWith: privateKey,
      extensions: [
        extensions.connectionKeys(),
        extensions.purposes([purpose]),
        ...(names.length === 0 ? [] : [extensions.names(names)]),
      ],
    });
    return { certPem, keyPem: encodeKeyPem(own.privateKey) };
  };
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return {
    certPem: signCertificate({
      subject: issuer,
      issuer,
      publicKey,
      signWith: privateKey,
      extensions: [extensions.certificateSigning(), extensions.authority()],
    }),
    keyPem: encodeKeyPem(privateKey),
    publicKeyHash: `sha256:${createHash('sha256').update(spki).digest('hex')}`,
    server: () =>
      issue({ commonName: 'kube-apiserver' }, SERVER_AUTH, [...SERVER_NAMES, ...otherNames]),
    client: (subject) => issue(subject, CLIENT_AUTH),
  };
}
