// SPDX-License-Identifier: Apache-2.0
// A self-signed certificate, written byte by byte: the simulator needs no tool beside it. Not for production.
import { Buffer } from 'node:buffer';
import { createHash, createSign, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { isIPv4 } from 'node:net';

export interface ServerCertificate {
  readonly cert: string;
  readonly key: string;
  /** SHA-256, as Proxmox and its clients show it: upper case pairs with colons. */
  readonly fingerprint: string;
}

function der(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  if (body.length < 128) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const hex = body.length.toString(16);
  const length = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body]);
}

const sequence = (...parts: readonly Uint8Array[]) => der(0x30, ...parts);
const set = (...parts: readonly Uint8Array[]) => der(0x31, ...parts);
const bitString = (bytes: Uint8Array) => der(0x03, Buffer.from([0]), bytes);
const utf8 = (text: string) => der(0x0c, Buffer.from(text));
const time = (text: string) => der(0x17, Buffer.from(text));

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const groups = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return der(0x06, Buffer.from(bytes));
}

const ECDSA_SHA256 = sequence(oid('1.2.840.10045.4.3.2'));

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

function pem(label: string, bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
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
