// SPDX-License-Identifier: Apache-2.0
// The hashes of a cluster's CA by which joining nodes recognize it.
import { createHash, X509Certificate } from 'node:crypto';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  AuthorityKeyIdentifier,
  Certificate,
  id_ce_authorityKeyIdentifier,
  id_ce_subjectKeyIdentifier,
  SubjectKeyIdentifier,
} from '@peculiar/asn1-x509';

/** kubeadm pins the public key of each CA. */
export function kubeadmCaHashes(pem: string): readonly string[] {
  return parseCertificates(pem).map(
    ({ publicKey }) => `sha256:${sha256(publicKey.export({ type: 'spki', format: 'der' }))}`,
  );
}

/**
 * The hash in a token of k3s or RKE2: of one certificate, the bundle's bytes; of several, the DER of the root that the
 * first certificate chains to, or the bundle's bytes if it chains to none.
 */
export function rancherCaHash(pem: string, now: number): string {
  const [first, ...others] = pem.match(PEM)?.length === 1 ? [] : parseCertificates(pem);
  if (first === undefined) return sha256(pem);
  const valid = others.filter((each) => isValidAt(each, now));
  const pools = {
    roots: valid.filter(isRoot),
    intermediates: valid.filter((each) => !isRoot(each)),
  };
  const root = isValidAt(first, now) ? findRoot([first], pools) : undefined;
  return sha256(root?.raw ?? pem);
}

interface CertificatePools {
  readonly roots: readonly X509Certificate[];
  readonly intermediates: readonly X509Certificate[];
}

/** The first chain that Go's verification finds: a root that signed the last certificate goes before an intermediate. */
function findRoot(
  chain: readonly [X509Certificate, ...X509Certificate[]],
  pools: CertificatePools,
): X509Certificate | undefined {
  const [last] = chain;
  const isParent = (each: X509Certificate) =>
    each.ca && last.checkIssued(each) && last.verify(each.publicKey) && !isInChain(each, chain);
  const root = pools.roots.find(isParent);
  if (root !== undefined) return root;
  for (const parent of pools.intermediates.filter(isParent)) {
    const found = findRoot([parent, ...chain], pools);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A cross-signed copy has the subject and the key of its original. */
function isInChain(certificate: X509Certificate, chain: readonly X509Certificate[]): boolean {
  return chain.some(
    (each) => each.subject === certificate.subject && each.publicKey.equals(certificate.publicKey),
  );
}

/** By key identifiers, as k3s does; a certificate that names no authority counts as a root. */
function isRoot({ raw }: X509Certificate): boolean {
  const { extensions = [] } = AsnConvert.parse(raw, Certificate).tbsCertificate;
  const valueOf = (id: string) => extensions.find(({ extnID }) => extnID === id)?.extnValue.buffer;
  const authority = valueOf(id_ce_authorityKeyIdentifier);
  const issuerKey =
    authority && AsnConvert.parse(authority, AuthorityKeyIdentifier).keyIdentifier?.buffer;
  if (issuerKey === undefined || issuerKey.byteLength === 0) return true;
  const own = valueOf(id_ce_subjectKeyIdentifier);
  const ownKey = own && AsnConvert.parse(own, SubjectKeyIdentifier).buffer;
  return ownKey !== undefined && Buffer.from(ownKey).equals(Buffer.from(issuerKey));
}

function isValidAt({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return validFromDate.getTime() <= now && now <= validToDate.getTime();
}

const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

function parseCertificates(pem: string): readonly X509Certificate[] {
  return Array.from(pem.matchAll(PEM), ([text]) => new X509Certificate(text));
}

function sha256(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}
