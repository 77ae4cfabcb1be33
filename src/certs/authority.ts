// SPDX-License-Identifier: Apache-2.0
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  X509Certificate,
} from 'node:crypto';
import { isIP, isIPv6 } from 'node:net';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  Validity as CertificateValidity,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Version,
} from '@peculiar/asn1-x509';
import { InvalidRequest } from '../ports/errors.ts';

export interface CertificatePair {
  readonly certPem: string;
  readonly keyPem: string;
}

/** Milliseconds since 1970. */
export interface Validity {
  readonly notBefore: number;
  readonly notAfter: number;
}

const COMMON_NAME = '2.5.4.3';
const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';
const KEY_ID_BYTES = 20;
const SERIAL_BYTES = 16;

interface Issuer {
  readonly name: string;
  readonly key: KeyObject;
}

interface CertificateFields {
  readonly subject: string;
  readonly issuer: Issuer;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Extension[];
  readonly validity: Validity;
}

export function createAuthority(name: string, validity: Validity): CertificatePair {
  const { publicKey, privateKey } = generateKeys();
  const usage = KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign;
  const certPem = signCertificate({
    subject: name,
    issuer: { name, key: privateKey },
    publicKey,
    extensions: [
      createExtension(id_ce_basicConstraints, new BasicConstraints({ cA: true }), true),
      createExtension(id_ce_keyUsage, new KeyUsage(usage), true),
    ],
    validity,
  });
  return { certPem, keyPem: formatKey(privateKey) };
}

/** Issues certificates of one validity, signed by the CA in `pair`. */
export class CertificateAuthority {
  readonly #issuer: Issuer;
  readonly #validity: Validity;

  constructor(pair: CertificatePair, validity: Validity) {
    this.#issuer = readIssuer(pair);
    this.#validity = validity;
  }

  /** `names` are the host names and addresses that clients connect to. */
  issueServer(names: readonly string[]): CertificatePair {
    return this.#issue(names[0] ?? 'localhost', id_kp_serverAuth, names);
  }

  issueClient(name: string): CertificatePair {
    return this.#issue(name, id_kp_clientAuth, [name]);
  }

  #issue(subject: string, purpose: string, names: readonly string[]): CertificatePair {
    const { publicKey, privateKey } = generateKeys();
    const certPem = signCertificate({
      subject,
      issuer: this.#issuer,
      publicKey,
      extensions: [
        createExtension(id_ce_basicConstraints, new BasicConstraints(), true),
        createExtension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
        createExtension(id_ce_extKeyUsage, new ExtendedKeyUsage([purpose])),
        createExtension(
          id_ce_subjectAltName,
          new SubjectAlternativeName(names.map(alternativeName)),
        ),
      ],
      validity: this.#validity,
    });
    return { certPem, keyPem: formatKey(privateKey) };
  }
}

function readIssuer({ certPem, keyPem }: CertificatePair): Issuer {
  try {
    const cert = new X509Certificate(certPem);
    const key = createPrivateKey(keyPem);
    const name = /^CN=(.*)$/m.exec(cert.subject)?.[1];
    if (name === undefined) throw new Error('the certificate has no common name');
    if (!cert.checkPrivateKey(key)) throw new Error('the key belongs to another certificate');
    return { name, key };
  } catch (cause) {
    throw new InvalidRequest(
      'REQUEST_INVALID',
      `ca.crt and ca.key are not a CA: ${String(cause)}`,
      {
        hint: 'Restore both files, or choose an empty folder to create a new CA.',
        cause,
      },
    );
  }
}

function generateKeys() {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

function formatKey(key: KeyObject): string {
  return String(key.export({ type: 'pkcs8', format: 'pem' }));
}

function signCertificate(fields: CertificateFields): string {
  const { subject, issuer, publicKey, extensions, validity } = fields;
  const algorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: toArrayBuffer(serialNumber(publicKey)),
    signature: algorithm,
    issuer: commonName(issuer.name),
    validity: new CertificateValidity({
      notBefore: new Date(validity.notBefore),
      notAfter: new Date(validity.notAfter),
    }),
    subject: commonName(subject),
    subjectPublicKeyInfo: AsnConvert.parse(spki, SubjectPublicKeyInfo),
    extensions: new Extensions([
      ...extensions,
      createExtension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyId(publicKey))),
      createExtension(
        id_ce_authorityKeyIdentifier,
        new AuthorityKeyIdentifier({
          keyIdentifier: new KeyIdentifier(keyId(createPublicKey(issuer.key))),
        }),
      ),
    ]),
  });
  const signature = sign('SHA256', Buffer.from(AsnConvert.serialize(tbsCertificate)), issuer.key);
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm: algorithm,
    signatureValue: toArrayBuffer(signature),
  });
  return new X509Certificate(Buffer.from(AsnConvert.serialize(certificate))).toString();
}

/** A hash of the key, so that issuer and subject of one key have the same id. Changing it breaks existing CAs. */
function keyId(key: KeyObject): Buffer {
  const spki = key.export({ type: 'spki', format: 'der' });
  const id = createHash('sha256').update(spki).digest().subarray(0, KEY_ID_BYTES);
  id[0] = (id[0] ?? 0) | 0x01;
  return id;
}

/** Unique per key; positive, as RFC 5280 requires. */
function serialNumber(key: KeyObject): Buffer {
  const serial = Buffer.from(keyId(key).subarray(0, SERIAL_BYTES));
  serial[0] = (serial[0] ?? 0) & 0x7f;
  return serial;
}

function createExtension(extnID: string, value: object, critical = false): Extension {
  return new Extension({
    extnID,
    critical,
    extnValue: new OctetString(AsnConvert.serialize(value)),
  });
}

function commonName(name: string): Name {
  const value = new AttributeValue({ utf8String: name });
  return new Name([
    new RelativeDistinguishedName([new AttributeTypeAndValue({ type: COMMON_NAME, value })]),
  ]);
}

function alternativeName(name: string): GeneralName {
  if (isIP(name) === 0) return new GeneralName({ dNSName: name });
  return new GeneralName({ iPAddress: isIPv6(name) ? normalizeIpv6(name) : name });
}

/** Hexadecimal groups only: the library rejects addresses such as ::ffff:10.0.0.1. */
function normalizeIpv6(address: string): string {
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

function toArrayBuffer(bytes: Buffer): ArrayBuffer {
  return new Uint8Array(bytes).buffer;
}
