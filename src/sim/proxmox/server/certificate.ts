// SPDX-License-Identifier: Apache-2.0
// Creates a self-signed certificate without an external tool. Not for production.
import { Buffer } from 'node:buffer';
import { createHash, createSign, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { isIPv4 } from 'node:net';
import { bitString, der, ECDSA_SHA256, oid, pem, sequence, set, time, utf8 } from '../x509/der.ts';

export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
  /** SHA-256 as Proxmox shows it: upper case hex pairs with colons. */
  readonly fingerprint: string;
}

function commonName(name: string): Buffer {
  return sequence(set(sequence(oid('2.5.4.3'), utf8(name))));
}

function alternativeName(name: string): Buffer {
  if (!isIPv4(name)) return der(0x82, Buffer.from(name));
  return der(0x87, Buffer.from(name.split('.').map(Number)));
}

function extensions(names: readonly string[]): Buffer {
  const alternatives = sequence(...names.map(alternativeName));
  const isAuthority = sequence(der(0x01, Buffer.from([0xff])));
  return der(
    0xa3,
    sequence(
      sequence(oid('2.5.29.17'), der(0x04, alternatives)),
      sequence(oid('2.5.29.19'), der(0x01, Buffer.from([0xff])), der(0x04, isAuthority)),
    ),
  );
}

/** Valid for the given names and addresses. */
export function makeCertificate(names: readonly string[]): ServerCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicDer = publicKey.export({ type: 'spki', format: 'der' });
  const serial = createHash('sha256').update(publicDer).digest().subarray(0, 8);
  serial[0] = (serial[0] ?? 0) & 0x7f;
  const name = commonName(names[0] ?? 'localhost');
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([0x01, ...serial])),
    ECDSA_SHA256,
    name,
    sequence(time('200101000000Z'), time('491231235959Z')),
    name,
    publicDer,
    extensions(names),
  );
  const signature = createSign('SHA256').update(body).sign(privateKey);
  const cert = pem('CERTIFICATE', sequence(body, ECDSA_SHA256, bitString(signature)));
  return {
    cert,
    key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
    fingerprint: new X509Certificate(cert).fingerprint256,
  };
}
