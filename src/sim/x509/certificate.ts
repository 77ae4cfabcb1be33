// SPDX-License-Identifier: Apache-2.0
// Signs certificates of the simulator and of its tests. Not for production.
import { Buffer } from 'node:buffer';
import { createHash, type KeyObject, sign, X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';

export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

export interface CertificateFields {
  readonly subject: Subject;
  readonly issuer: Subject;
  readonly publicKey: KeyObject;
  readonly signWith: KeyObject;
  readonly extensions: readonly Extension[];
}

export const COMMON_NAME = '2.5.4.3';
export const ORGANIZATION = '2.5.4.10';
const SERIAL_BYTES = 16;
export const ECDSA_SHA256 = new AlgorithmIdentifier({ algorithm: '1.2.840.10045.4.3.2' });

/** Valid from 2020 to 2049, signed with an EC key. Returns PEM. */
export function signCertificate(fields: CertificateFields): string {
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: serialNumber(fields.publicKey),
    signature: ECDSA_SHA256,
    issuer: encodeName(fields.issuer),
    validity: new Validity({
      notBefore: new Date('2020-01-01T00:00:00Z'),
      notAfter: new Date('2049-12-31T23:59:59Z'),
    }),
    subject: encodeName(fields.subject),
    subjectPublicKeyInfo: encodePublicKey(fields.publicKey),
    extensions: new Extensions([...fields.extensions]),
  });
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm: ECDSA_SHA256,
    signatureValue: signStructure(tbsCertificate, fields.signWith),
  });
  return new X509Certificate(Buffer.from(AsnConvert.serialize(certificate))).toString();
}

/** Unique per key. */
function serialNumber(key: KeyObject): ArrayBuffer {
  const spki = key.export({ type: 'spki', format: 'der' });
  const serial = createHash('sha256').update(spki).digest().subarray(0, SERIAL_BYTES);
  // Positive, and not zero.
  serial[0] = 0x01;
  return toArrayBuffer(serial);
}

export function encodeName({ commonName, organizations = [] }: Subject): Name {
  const part = (type: string, text: string) => {
    const value = new AttributeValue({ utf8String: text });
    return new RelativeDistinguishedName([new AttributeTypeAndValue({ type, value })]);
  };
  return new Name([
    ...organizations.map((text) => part(ORGANIZATION, text)),
    part(COMMON_NAME, commonName),
  ]);
}

export function encodePublicKey(key: KeyObject): SubjectPublicKeyInfo {
  return AsnConvert.parse(key.export({ type: 'spki', format: 'der' }), SubjectPublicKeyInfo);
}

export function signStructure(structure: object, key: KeyObject): ArrayBuffer {
  return toArrayBuffer(sign('SHA256', Buffer.from(AsnConvert.serialize(structure)), key));
}

/** The extensions of a CA, or of a certificate for the purposes (OIDs) and names (host names and addresses). */
export const extensions = {
  authority: () =>
    createExtension(id_ce_basicConstraints, new BasicConstraints({ cA: true }), true),
  certificateSigning: () =>
    createExtension(
      id_ce_keyUsage,
      new KeyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign),
      true,
    ),
  connectionKeys: () =>
    createExtension(
      id_ce_keyUsage,
      new KeyUsage(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment),
      true,
    ),
  purposes: (oids: readonly string[]) =>
    createExtension(id_ce_extKeyUsage, new ExtendedKeyUsage([...oids])),
  names: (names: readonly string[]) =>
    createExtension(
      id_ce_subjectAltName,
      new SubjectAlternativeName(
        names.map(
          (name) => new GeneralName(isIP(name) === 0 ? { dNSName: name } : { iPAddress: name }),
        ),
      ),
    ),
};

function createExtension(extnID: string, value: object, critical = false): Extension {
  const extnValue = new OctetString(AsnConvert.serialize(value));
  return new Extension({ extnID, critical, extnValue });
}

function toArrayBuffer(bytes: Uint8Array): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
