// SPDX-License-Identifier: Apache-2.0
// Certificates with arbitrary names in arbitrary fields, as a careless CA might sign them.
import { createPrivateKey, createSign, generateKeyPairSync } from 'node:crypto';

const DAY_MS = 86_400_000;

/** Object identifiers, DER-encoded. */
const OID = {
  commonName: '550403',
  organization: '55040a',
  alternativeName: '551d11',
  ecdsaSha256: '2a8648ce3d040302',
} as const;

const ECDSA_SHA256 = sequence(oid(OID.ecdsaSha256));

export interface OddNames {
  readonly common?: readonly (string | Buffer)[];
  readonly organization?: string;
  readonly dns?: readonly string[];
  readonly uri?: readonly string[];
  readonly email?: readonly string[];
  /** Four or sixteen bytes. */
  readonly ip?: readonly Buffer[];
  /** A common name in a directory name. */
  readonly directory?: readonly string[];
}

export interface OddIssuer {
  readonly name: string;
  readonly keyPem: string;
}

export function oddCertificate(names: OddNames, issuer: OddIssuer, from: number) {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = sequence(
    ...(names.organization === undefined ? [] : [attribute(OID.organization, names.organization)]),
    ...(names.common ?? []).map((name) => attribute(OID.commonName, name)),
  );
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1, 2, 3, 4])),
    ECDSA_SHA256,
    sequence(attribute(OID.commonName, issuer.name)),
    sequence(instant(from), instant(from + DAY_MS)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
    ...extensions(names),
  );
  const signature = createSign('SHA256').update(body).sign(createPrivateKey(issuer.keyPem));
  return {
    certPem: pem(sequence(body, ECDSA_SHA256, bits(signature))),
    keyPem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  };
}

function extensions({ dns, uri, email, ip, directory }: OddNames): readonly Buffer[] {
  const latin = (tag: number) => (text: string) => der(tag, Buffer.from(text, 'latin1'));
  const all = [
    ...(email ?? []).map(latin(0x81)),
    ...(dns ?? []).map(latin(0x82)),
    ...(directory ?? []).map((name) => der(0xa4, sequence(attribute(OID.commonName, name)))),
    ...(uri ?? []).map(latin(0x86)),
    ...(ip ?? []).map((bytes) => der(0x87, bytes)),
  ];
  if (all.length === 0) return [];
  return [der(0xa3, sequence(sequence(oid(OID.alternativeName), der(0x04, sequence(...all)))))];
}

function attribute(kind: string, value: string | Buffer): Buffer {
  const text = typeof value === 'string' ? der(0x0c, Buffer.from(value)) : value;
  return der(0x31, sequence(oid(kind), text));
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const length = Buffer.from([0x82, content.length >> 8, content.length & 0xff]);
  const short = content.length < 0x80 ? Buffer.from([content.length]) : undefined;
  const medium = content.length < 0x100 ? Buffer.from([0x81, content.length]) : length;
  return Buffer.concat([Buffer.from([tag]), short ?? medium, content]);
}

function sequence(...parts: readonly Uint8Array[]): Buffer {
  return der(0x30, ...parts);
}

function bits(content: Uint8Array): Buffer {
  return der(0x03, Buffer.from([0]), content);
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function instant(ms: number): Buffer {
  return der(
    0x17,
    Buffer.from(
      new Date(ms)
        .toISOString()
        .slice(2)
        .replace(/[-:T]|\.\d+/g, ''),
    ),
  );
}

function pem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}
