// SPDX-License-Identifier: Apache-2.0
// A certificate authority for one control plane: it signs servers and clients, and the controller manager signs with its
// key what joining nodes ask for.
import { Buffer } from 'node:buffer';
import {
  createHash,
  createSign,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { x509 } from '../../../src/sim/proxmox/index.ts';

const { bitString, der, ECDSA_SHA256, oid, pem, sequence, set, time, utf8 } = x509;

export interface KeyAndCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

const OID = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  keyUsage: '2.5.29.15',
  alternativeName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;

const YES = der(0x01, Buffer.from([0xff]));

function nameOf({ commonName, organizations = [] }: Subject): Buffer {
  const part = (kind: string, text: string) => set(sequence(oid(kind), utf8(text)));
  return sequence(
    ...organizations.map((text) => part(OID.organization, text)),
    part(OID.commonName, commonName),
  );
}

function extension(kind: string, value: Uint8Array, critical = false): Buffer {
  return sequence(oid(kind), ...(critical ? [YES] : []), der(0x04, value));
}

/** Certificate signing and CRL signing; or digital signature and key encipherment. */
function keyUsage(isAuthority: boolean): Buffer {
  const bits = isAuthority ? [0x01, 0x06] : [0x05, 0xa0];
  return extension(OID.keyUsage, der(0x03, Buffer.from(bits)), true);
}

interface Request {
  readonly subject: Subject;
  readonly issuer: Subject;
  readonly publicKey: KeyObject;
  readonly signWith: KeyObject;
  readonly extensions: readonly Uint8Array[];
}

function certificate({ subject, issuer, publicKey, signWith, extensions }: Request): string {
  const serial = randomBytes(16);
  serial[0] = 0x01;
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ECDSA_SHA256,
    nameOf(issuer),
    sequence(time('200101000000Z'), time('491231235959Z')),
    nameOf(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  );
  const signature = createSign('SHA256').update(body).sign(signWith);
  return pem('CERTIFICATE', sequence(body, ECDSA_SHA256, bitString(signature)));
}

export interface Authority extends KeyAndCertificate {
  /** `sha256:…` of the public key, as kubeadm pins it. */
  readonly publicKeyHash: string;
  server(): KeyAndCertificate;
  client(subject: Subject): KeyAndCertificate;
}

export function keyPair(): { readonly publicKey: KeyObject; readonly privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

export function keyPem(key: KeyObject): string {
  // RFC 5915's form is what every Kubernetes program reads.
  return String(key.export({ type: 'sec1', format: 'pem' }));
}

/** For everything on 127.0.0.1 and under the names that pods use. */
const SERVER_NAMES = sequence(
  der(0x87, Buffer.from([127, 0, 0, 1])),
  der(0x87, Buffer.from([10, 96, 0, 1])),
  ...['localhost', 'kubernetes', 'kubernetes.default.svc'].map((name) =>
    der(0x82, Buffer.from(name)),
  ),
);

export function createAuthority(commonName: string): Authority {
  const { publicKey, privateKey } = keyPair();
  const issuer = { commonName };
  const issue = (subject: Subject, purpose: string, more: readonly Uint8Array[]) => {
    const own = keyPair();
    const extensions = [
      keyUsage(false),
      extension(OID.extendedKeyUsage, sequence(oid(purpose))),
      ...more,
    ];
    const order = { subject, issuer, publicKey: own.publicKey, signWith: privateKey, extensions };
    return { certPem: certificate(order), keyPem: keyPem(own.privateKey) };
  };
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return {
    certPem: certificate({
      subject: issuer,
      issuer,
      publicKey,
      signWith: privateKey,
      extensions: [keyUsage(true), extension(OID.basicConstraints, sequence(YES), true)],
    }),
    keyPem: keyPem(privateKey),
    publicKeyHash: `sha256:${createHash('sha256').update(spki).digest('hex')}`,
    server: () =>
      issue({ commonName: 'kube-apiserver' }, OID.serverAuth, [
        extension(OID.alternativeName, SERVER_NAMES),
      ]),
    client: (subject) => issue(subject, OID.clientAuth, []),
  };
}
