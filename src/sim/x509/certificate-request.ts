// SPDX-License-Identifier: Apache-2.0
// Creates a PKCS #10 certificate request like a kubelet does.
import { Buffer } from 'node:buffer';
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { AsnConvert, AsnProp, AsnPropTypes, AsnType, AsnTypeTypes } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, Name, SubjectPublicKeyInfo } from '@peculiar/asn1-x509';
import {
  COMMON_NAME,
  ECDSA_SHA256,
  encodeName,
  encodePublicKey,
  ORGANIZATION,
  type Subject,
  signStructure,
} from './certificate.ts';

export interface CertificateRequest {
  readonly requestPem: string;
  readonly keyPem: string;
}

/** RFC 2986, section 4.1. */
class CertificationRequestInfo {
  version = 0;
  subject = new Name();
  subjectPublicKeyInfo = new SubjectPublicKeyInfo();
  /** Mandatory even when it is empty. */
  attributes: ArrayBuffer[] = [];
}
declare(CertificationRequestInfo, {
  version: { type: AsnPropTypes.Integer },
  subject: { type: Name },
  subjectPublicKeyInfo: { type: SubjectPublicKeyInfo },
  attributes: { type: AsnPropTypes.Any, repeated: 'set', implicit: true, context: 0 },
});

/** RFC 2986, section 4.2. */
export class CertificationRequest {
  info = new CertificationRequestInfo();
  signatureAlgorithm = new AlgorithmIdentifier();
  signature = new ArrayBuffer(0);
}
declare(CertificationRequest, {
  info: { type: CertificationRequestInfo },
  signatureAlgorithm: { type: AlgorithmIdentifier },
  signature: { type: AsnPropTypes.BitString },
});

type Field = Parameters<typeof AsnProp>[0];

/** Type stripping has no decorators, so the library's are called as functions. */
function declare<T extends object>(
  structure: new () => T,
  fields: Readonly<Record<keyof T, Field>>,
): void {
  AsnType({ type: AsnTypeTypes.Sequence })(structure);
  for (const [name, field] of Object.entries<Field>(fields)) {
    AsnProp(field)(structure.prototype, name);
  }
}

export function requestCertificate(subject: Subject): CertificateRequest {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const info = Object.assign(new CertificationRequestInfo(), {
    subject: encodeName(subject),
    subjectPublicKeyInfo: encodePublicKey(publicKey),
  });
  const request = Object.assign(new CertificationRequest(), {
    info,
    signatureAlgorithm: ECDSA_SHA256,
    signature: signStructure(info, privateKey),
  });
  return {
    requestPem: formatPem('CERTIFICATE REQUEST', Buffer.from(AsnConvert.serialize(request))),
    keyPem: String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
  };
}

/** The subject and the key of a request, for the authority that signs it. */
export function readCertificateRequest(requestPem: string): {
  readonly subject: Subject;
  readonly publicKey: KeyObject;
} {
  const base64 = requestPem.replace(/-----[A-Z ]+-----/g, '');
  const { info } = AsnConvert.parse(Buffer.from(base64, 'base64'), CertificationRequest);
  const parts = info.subject.flat().map(({ type, value }) => ({ type, text: value.toString() }));
  const texts = (type: string) => parts.filter((one) => one.type === type).map(({ text }) => text);
  const der = Buffer.from(AsnConvert.serialize(info.subjectPublicKeyInfo));
  return {
    subject: {
      commonName: texts(COMMON_NAME)[0] ?? '',
      organizations: texts(ORGANIZATION),
    },
    publicKey: createPublicKey({ key: der, format: 'der', type: 'spki' }),
  };
}

function formatPem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
