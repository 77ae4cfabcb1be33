// SPDX-License-Identifier: Apache-2.0
// Creates a PKCS #10 certificate request like a kubelet does.
import { Buffer } from 'node:buffer';
import { createSign, generateKeyPairSync } from 'node:crypto';
import { bitString, der, ECDSA_SHA256, oid, pem, sequence, set, utf8 } from './der.ts';

export interface CertificateRequest {
  readonly requestPem: string;
  readonly keyPem: string;
}

export function requestCertificate(subject: {
  readonly commonName: string;
  readonly organization: string;
}): CertificateRequest {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const part = (kind: string, text: string) => set(sequence(oid(kind), utf8(text)));
  const body = sequence(
    der(0x02, Buffer.from([0])),
    sequence(part('2.5.4.10', subject.organization), part('2.5.4.3', subject.commonName)),
    publicKey.export({ type: 'spki', format: 'der' }),
    // No attributes: the set is mandatory even when it is empty.
    der(0xa0),
  );
  const signature = createSign('SHA256').update(body).sign(privateKey);
  return {
    requestPem: pem('CERTIFICATE REQUEST', sequence(body, ECDSA_SHA256, bitString(signature))),
    keyPem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  };
}
