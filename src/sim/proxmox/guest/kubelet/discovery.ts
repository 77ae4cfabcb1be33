// SPDX-License-Identifier: Apache-2.0
// Finds and authenticates the API server with a join token. kubeadm reads the public cluster-info ConfigMap and verifies
// its signature; k3s and RKE2 read the CA bundle from the server and compare it with the hash in the token.
import { createHash, createHmac, timingSafeEqual, X509Certificate } from 'node:crypto';
import { AsnConvert } from '@peculiar/asn1-schema';
import { Certificate } from '@peculiar/asn1-x509';
import { asList, asRecord, asText, parseYaml } from '../untyped-values.ts';
import { JoinRefusedError, type OpenConnection, ServerApi } from './server-api.ts';

export interface DiscoveryRequest {
  readonly distribution: 'k3s' | 'rke2' | 'kubeadm';
  readonly server: string;
  readonly token: string;
  readonly caCertHashes: readonly string[];
  readonly connect: OpenConnection;
  readonly signal: AbortSignal;
}

export interface DiscoveredServer {
  /** `https://host:port` of an API server. */
  readonly server: string;
  readonly caPem: string;
  /** The part of the token that authenticates at the API server: `id.secret`. */
  readonly bearer: string;
}

const BOOTSTRAP_TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;

export function discoverServer(request: DiscoveryRequest): Promise<DiscoveredServer> {
  return request.distribution === 'kubeadm'
    ? discoverByClusterInfo(request)
    : discoverBySupervisor(request);
}

async function callServer<T>(
  request: DiscoveryRequest,
  caPem: string | undefined,
  call: (api: ServerApi) => Promise<T>,
): Promise<T> {
  const transport = await request.connect({ caPem });
  const api = new ServerApi({
    transport,
    server: formatServerUrl(request.server),
    signal: request.signal,
  });
  try {
    return await call(api);
  } finally {
    await api.close();
  }
}

function formatServerUrl(server: string): string {
  return (server.includes('://') ? server : `https://${server}`).replace(/\/+$/, '');
}

async function discoverByClusterInfo(request: DiscoveryRequest): Promise<DiscoveredServer> {
  const [, id = '', secret = ''] = BOOTSTRAP_TOKEN.exec(request.token) ?? [];
  if (id === '')
    throw new JoinRefusedError('the token is not of the form [a-z0-9]{6}.[a-z0-9]{16}');
  const path = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
  const data = await callServer(request, undefined, async (api) =>
    asRecord(asRecord(await api.requestJson('GET', path))['data']),
  );
  const kubeconfig = asText(data['kubeconfig']) ?? '';
  const signature = asText(data[`jws-kubeconfig-${id}`]);
  // Retried: the controller may not have signed for a new token yet. A deleted token gives the same result.
  if (signature === undefined) throw new Error(`cluster-info has no signature for token id ${id}`);
  if (!hasValidSignature(kubeconfig, signature, secret)) {
    throw new JoinRefusedError('the signature of cluster-info does not match this token');
  }
  const cluster = asRecord(
    asRecord(asList(asRecord(parseYaml(kubeconfig).value)['clusters'])[0])['cluster'],
  );
  const caPem = Buffer.from(
    asText(cluster['certificate-authority-data']) ?? '',
    'base64',
  ).toString();
  checkCaPins(caPem, request.caCertHashes);
  return {
    server: asText(cluster['server']) ?? formatServerUrl(request.server),
    caPem,
    bearer: request.token,
  };
}

/** Verifies a detached JWS (header and signature) over the payload. */
function hasValidSignature(payload: string, jws: string, secret: string): boolean {
  const [header = '', , signature = ''] = jws.split('.');
  const body = `${header}.${Buffer.from(payload).toString('base64url')}`;
  const expected = createHmac('sha256', secret).update(body).digest();
  const found = Buffer.from(signature, 'base64url');
  return found.length === expected.length && timingSafeEqual(found, expected);
}

function checkCaPins(caPem: string, pins: readonly string[]): void {
  if (pins.length === 0) return;
  const hashes = splitCertificates(caPem).map((text) => {
    const key = new X509Certificate(text).publicKey.export({ type: 'spki', format: 'der' });
    return `sha256:${createHash('sha256').update(key).digest('hex')}`;
  });
  if (!hashes.some((hash) => pins.includes(hash))) {
    throw new JoinRefusedError('none of the public keys in cluster-info is pinned');
  }
}

function splitCertificates(text: string): readonly string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

async function discoverBySupervisor(request: DiscoveryRequest): Promise<DiscoveredServer> {
  const { hash, bearer } = parseRancherToken(request.token);
  const caPem = await callServer(request, undefined, (api) => api.requestText('GET', '/cacerts'));
  if (hash !== undefined && hash !== hashCaBundle(caPem)) {
    throw new JoinRefusedError('token CA hash does not match the Cluster CA certificate hash');
  }
  const path = `/v1-${request.distribution}/apiservers`;
  const addresses = await callServer(request, caPem, (api) => api.requestJson('GET', path));
  const [first] = asList(addresses);
  return { server: formatServerUrl(asText(first) ?? request.server), caPem, bearer };
}

/**
 * As `hashCA` of k3s: several certificates are reduced to the root of the first one. A root is any later certificate whose
 * authority key id is absent or its own.
 */
export function hashCaBundle(caPem: string): string {
  const [leaf, ...rest] = splitCertificates(caPem);
  const chained = leaf === undefined || rest.length === 0 ? undefined : findChainEnd(leaf, rest);
  return createHash('sha256')
    .update(chained ?? caPem)
    .digest('hex');
}

/** Walks from certificate to issuer, breadth first: the shortest chain wins. */
function findChainEnd(leaf: string, rest: readonly string[]): Buffer | undefined {
  const others = rest.map((text) => ({ x509: new X509Certificate(text), isRoot: isRoot(text) }));
  const seen = new Set([identityOf(new X509Certificate(leaf))]);
  let level = [new X509Certificate(leaf)];
  while (level.length > 0) {
    const parents = others.filter(
      ({ x509 }) =>
        !seen.has(identityOf(x509)) &&
        level.some((child) => child.checkIssued(x509) && child.verify(x509.publicKey)),
    );
    const root = parents.find((each) => each.isRoot);
    if (root !== undefined) return root.x509.raw;
    for (const { x509 } of parents) seen.add(identityOf(x509));
    level = parents.map(({ x509 }) => x509);
  }
  return undefined;
}

function identityOf(certificate: X509Certificate): string {
  const key = certificate.publicKey.export({ type: 'spki', format: 'der' }).toString('hex');
  return `${certificate.subject}\n${key}`;
}

function isRoot(pem: string): boolean {
  const { extensions = [] } = AsnConvert.parse(
    new X509Certificate(pem).raw,
    Certificate,
  ).tbsCertificate;
  const hexOf = (id: string) => {
    const value = extensions.find(({ extnID }) => extnID === id)?.extnValue.buffer;
    return value === undefined ? '' : Buffer.from(value).toString('hex');
  };
  // `30 16 80 14 <20 bytes>` and `04 14 <20 bytes>` in DER.
  const authority = /8014(.{40})/.exec(hexOf('2.5.29.35'))?.[1];
  return authority === undefined || hexOf('2.5.29.14') === `0414${authority}`;
}

/** `K10<hash>::<id>.<secret>`. Without `K10<hash>::` the server's CA is not verified. */
function parseRancherToken(token: string): { readonly hash?: string; readonly bearer: string } {
  const [, hash, rest = token] = /^K10([0-9a-f]{64})::(.*)$/.exec(token) ?? [];
  if (!BOOTSTRAP_TOKEN.test(rest)) {
    // Server and agent tokens are passwords of the supervisor; the simulator supports bootstrap tokens only.
    throw new JoinRefusedError('the token is not a bootstrap token');
  }
  return { bearer: rest, ...(hash !== undefined && { hash }) };
}
