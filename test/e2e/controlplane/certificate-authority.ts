// SPDX-License-Identifier: Apache-2.0
// The certificate authority of one control plane: it signs server and client certificates. The controller manager uses
// its key to sign the certificates of joining nodes.
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

const DER_TRUE = der(0x01, Buffer.from([0xff]));

function encodeName({ commonName, organizations = [] }: Subject): Buffer {
  const part = (kind: string, text: string) => set(sequence(oid(kind), utf8(text)));
  return sequence(
    ...organizations.map((text) => part(OID.organization, text)),
    part(OID.commonName, commonName),
  );
}

function extension(kind: string, value: Uint8Array, critical = false): Buffer {
  return sequence(oid(kind), ...(critical ? [DER_TRUE] : []), der(0x04, value));
}

/** Certificate signing and CRL signing; or digital signature and key encipherment. */
function keyUsage(isAuthority: boolean): Buffer {
  const bits = isAuthority ? [0x01, 0x06] : [0x05, 0xa0];
  return extension(OID.keyUsage, der(0x03, Buffer.from(bits)), true);
}

interface CertificateRequest {
  readonly subject: Subject;
  readonly issuer: Subject;
  readonly publicKey: KeyObject;
  readonly signWith: KeyObject;
  readonly extensions: readonly Uint8Array[];
}

function issueCertificate({
  subject,
  issuer,
  publicKey,
  signWith,
  extensions,
}: CertificateRequest): string {
  const serial = randomBytes(16);
  serial[0] = 0x01;
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ECDSA_SHA256,
    encodeName(issuer),
    sequence(time('200101000000Z'), time('491231235959Z')),
    encodeName(subject),
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
const SERVER_NAMES = sequence(
  der(0x87, Buffer.from([127, 0, 0, 1])),
  der(0x87, Buffer.from([10, 96, 0, 1])),
  ...['localhost', 'kubernetes', 'kubernetes.default.svc'].map((name) =>
    der(0x82, Buffer.from(name)),
  ),
);

export function createAuthority(commonName: string): Authority {
  const { publicKey, privateKey } = generateKeyPair();
  const issuer = { commonName };
  const issue = (subject: Subject, purpose: string, more: readonly Uint8Array[]) => {
    const own = generateKeyPair();
    const extensions = [
      keyUsage(false),
      extension(OID.extendedKeyUsage, sequence(oid(purpose))),
      ...more,
    ];
    const request = { subject, issuer, publicKey: own.publicKey, signWith: privateKey, extensions };
    return { certPem: issueCertificate(request), keyPem: encodeKeyPem(own.privateKey) };
  };
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  return {
    certPem: issueCertificate({
      subject: issuer,
      issuer,
      publicKey,
      signWith: privateKey,
      extensions: [keyUsage(true), extension(OID.basicConstraints, sequence(DER_TRUE), true)],
    }),
    keyPem: encodeKeyPem(privateKey),
    publicKeyHash: `sha256:${createHash('sha256').update(spki).digest('hex')}`,
    server: () =>
      issue({ commonName: 'kube-apiserver' }, OID.serverAuth, [
        extension(OID.alternativeName, SERVER_NAMES),
      ]),
    client: (subject) => issue(subject, OID.clientAuth, []),
  };
}
