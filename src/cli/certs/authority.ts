// SPDX-License-Identifier: Apache-2.0
// A certificate authority of one's own, for those without cert-manager: signs one server and its clients.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  createSign,
  generateKeyPairSync,
  type KeyObject,
  X509Certificate,
} from 'node:crypto';
import { isIP, isIPv4 } from 'node:net';
import { InvalidRequest } from '../../ports/errors.ts';
import { bits, der, instant, integer, octets, oid, pem, sequence, set, TRUE, utf8 } from './der.ts';

export interface Pair {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface Validity {
  readonly from: number;
  readonly until: number;
}

const OID = {
  commonName: '2.5.4.3',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  alternativeName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;

const ECDSA_SHA256 = sequence(oid('1.2.840.10045.4.3.2'));
const VERSION_3 = der(0xa0, der(0x02, Buffer.from([2])));
const USAGE = {
  /** Signing certificates and revocation lists. */
  authority: bits(Buffer.from([0x06]), 1),
  /** Digital signature. */
  leaf: bits(Buffer.from([0x80]), 7),
} as const;

interface Draft {
  readonly subject: string;
  readonly issuer: Issuer | undefined;
  readonly publicKey: KeyObject;
  readonly signWith: KeyObject;
  readonly extensions: readonly Uint8Array[];
  readonly validity: Validity;
}

interface Issuer {
  readonly name: string;
  readonly key: KeyObject;
}

export function makeAuthority(name: string, validity: Validity): Pair {
  const { publicKey, privateKey } = newKeys();
  const extensions = [
    extension(OID.basicConstraints, sequence(TRUE), true),
    extension(OID.keyUsage, USAGE.authority, true),
  ];
  const draft = { subject: name, issuer: undefined, publicKey, signWith: privateKey };
  return {
    certPem: certificate({ ...draft, extensions, validity }),
    keyPem: keyText(privateKey),
  };
}

export class Authority {
  readonly #issuer: Issuer;
  readonly #validity: Validity;

  constructor(pair: Pair, validity: Validity) {
    this.#issuer = readIssuer(pair);
    this.#validity = validity;
  }

  /** Names and addresses under which clients reach it; they compare with what they dialled. */
  server(names: readonly string[]): Pair {
    return this.#issue(names[0] ?? 'localhost', OID.serverAuth, names);
  }

  client(name: string): Pair {
    return this.#issue(name, OID.clientAuth, [name]);
  }

  #issue(subject: string, purpose: string, names: readonly string[]): Pair {
    const { publicKey, privateKey } = newKeys();
    const extensions = [
      extension(OID.basicConstraints, sequence(), true),
      extension(OID.keyUsage, USAGE.leaf, true),
      extension(OID.extendedKeyUsage, sequence(oid(purpose))),
      extension(OID.alternativeName, sequence(...names.map(alternativeName))),
    ];
    const { key: signWith } = this.#issuer;
    const draft = { subject, issuer: this.#issuer, publicKey, signWith, extensions };
    return {
      certPem: certificate({ ...draft, validity: this.#validity }),
      keyPem: keyText(privateKey),
    };
  }
}

function readIssuer({ certPem, keyPem }: Pair): Issuer {
  try {
    const cert = new X509Certificate(certPem);
    const key = createPrivateKey(keyPem);
    const name = /^CN=(.*)$/m.exec(cert.subject)?.[1];
    if (name === undefined || !cert.checkPrivateKey(key))
      throw new Error('they do not belong together');
    return { name, key };
  } catch (cause) {
    throw new InvalidRequest('REQUEST_INVALID', `ca.crt and ca.key are no CA: ${String(cause)}`, {
      cause,
    });
  }
}

function newKeys() {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' });
}

function keyText(key: KeyObject): string {
  return String(key.export({ type: 'pkcs8', format: 'pem' }));
}

function certificate(draft: Draft): string {
  const { subject, issuer, publicKey, signWith, extensions, validity } = draft;
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const authorityKey = issuer === undefined ? publicKey : createPublicKey(issuer.key);
  const body = sequence(
    VERSION_3,
    integer(keyId(publicKey).subarray(0, 16)),
    ECDSA_SHA256,
    commonName(issuer?.name ?? subject),
    sequence(instant(validity.from), instant(validity.until)),
    commonName(subject),
    spki,
    der(
      0xa3,
      sequence(
        ...extensions,
        extension(OID.subjectKeyId, octets(keyId(publicKey))),
        extension(OID.authorityKeyId, sequence(der(0x80, keyId(authorityKey)))),
      ),
    ),
  );
  const signature = createSign('SHA256').update(body).sign(signWith);
  return pem('CERTIFICATE', sequence(body, ECDSA_SHA256, bits(signature)));
}

/** Of the key, so that the same key has the same id; never zero. */
function keyId(key: KeyObject): Buffer {
  const spki = key.export({ type: 'spki', format: 'der' });
  const id = createHash('sha256').update(spki).digest().subarray(0, 20);
  id[0] = (id[0] ?? 0) | 0x01;
  return id;
}

function extension(kind: string, value: Uint8Array, critical = false): Buffer {
  return sequence(oid(kind), ...(critical ? [TRUE] : []), octets(value));
}

function commonName(name: string): Buffer {
  return sequence(set(sequence(oid(OID.commonName), utf8(name))));
}

function alternativeName(name: string): Buffer {
  if (isIP(name) === 0) return der(0x82, Buffer.from(name, 'ascii'));
  return der(0x87, isIPv4(name) ? Buffer.from(name.split('.').map(Number)) : v6Bytes(name));
}

function v6Bytes(address: string): Buffer {
  // The parser of URLs writes every form of an address in the same way.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string | undefined) =>
    text === undefined || text === '' ? [] : text.split(':');
  const [left, right] = [groups(head), groups(tail)];
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0');
  const all = [...left, ...(tail === undefined ? [] : zeros), ...right];
  return Buffer.from(all.map((group) => group.padStart(4, '0')).join(''), 'hex');
}
