// SPDX-License-Identifier: Apache-2.0
// Creates a self-signed certificate without an external tool. Not for production.
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { extensions, signCertificate } from '../../x509/certificate.ts';

export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
  /** SHA-256 as Proxmox shows it: upper case hex pairs with colons. */
  readonly fingerprint: string;
}

/** Valid for the given names and addresses. */
export function makeCertificate(names: readonly string[]): ServerCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = { commonName: names[0] ?? 'localhost' };
  const cert = signCertificate({
    subject,
    issuer: subject,
    publicKey,
    signWith: privateKey,
    extensions: [extensions.names(names), extensions.authority()],
  });
  return {
    cert,
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    fingerprint: new X509Certificate(cert).fingerprint256,
  };
}
