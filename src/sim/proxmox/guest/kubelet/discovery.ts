// SPDX-License-Identifier: Apache-2.0
// From a token to a server that can be trusted. kubeadm reads a signed ConfigMap that anybody may see; k3s and RKE2 read
// the CA bundle from their server and hold it against the hash in the token.
import { createHash, createHmac, timingSafeEqual, X509Certificate } from 'node:crypto';
import { listOf, parseYaml, recordOf, textOf } from '../plain-values.ts';
import { JoinRefused, type OpenConnection, ServerApi } from './server-api.ts';

export interface DiscoveryOrder {
  readonly distribution: 'k3s' | 'rke2' | 'kubeadm';
  readonly server: string;
  readonly token: string;
  readonly caCertHashes: readonly string[];
  readonly connect: OpenConnection;
  readonly signal: AbortSignal;
}

export interface Discovered {
  /** `https://host:port` of an API server. */
  readonly server: string;
  readonly caPem: string;
  /** The part of the token that the API server knows: `id.secret`. */
  readonly bearer: string;
}

const BOOTSTRAP_TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;

export function discover(order: DiscoveryOrder): Promise<Discovered> {
  return order.distribution === 'kubeadm' ? byClusterInfo(order) : bySupervisor(order);
}

async function withApi<T>(
  order: DiscoveryOrder,
  caPem: string | undefined,
  use: (api: ServerApi) => Promise<T>,
): Promise<T> {
  const transport = await order.connect({ caPem });
  const api = new ServerApi({ transport, server: urlOf(order.server), signal: order.signal });
  try {
    return await use(api);
  } finally {
    await api.close();
  }
}

function urlOf(server: string): string {
  return (server.includes('://') ? server : `https://${server}`).replace(/\/+$/, '');
}

async function byClusterInfo(order: DiscoveryOrder): Promise<Discovered> {
  const [, id = '', secret = ''] = BOOTSTRAP_TOKEN.exec(order.token) ?? [];
  if (id === '') throw new JoinRefused('the token is not of the form [a-z0-9]{6}.[a-z0-9]{16}');
  const path = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
  const data = await withApi(order, undefined, async (api) =>
    recordOf(recordOf(await api.json('GET', path))['data']),
  );
  const kubeconfig = textOf(data['kubeconfig']) ?? '';
  const signature = textOf(data[`jws-kubeconfig-${id}`]);
  // The signer may not have seen a new token yet; a token that is gone looks the same.
  if (signature === undefined) throw new Error(`cluster-info has no signature for token id ${id}`);
  if (!isSigned(kubeconfig, signature, secret)) {
    throw new JoinRefused('the signature of cluster-info is not made with this token');
  }
  const cluster = recordOf(
    recordOf(listOf(recordOf(parseYaml(kubeconfig).value)['clusters'])[0])['cluster'],
  );
  const caPem = Buffer.from(
    textOf(cluster['certificate-authority-data']) ?? '',
    'base64',
  ).toString();
  demandPinned(caPem, order.caCertHashes);
  return { server: textOf(cluster['server']) ?? urlOf(order.server), caPem, bearer: order.token };
}

/** A detached JWS: header and signature; the payload is the text itself. */
function isSigned(payload: string, jws: string, secret: string): boolean {
  const [header = '', , signature = ''] = jws.split('.');
  const body = `${header}.${Buffer.from(payload).toString('base64url')}`;
  const expected = createHmac('sha256', secret).update(body).digest();
  const found = Buffer.from(signature, 'base64url');
  return found.length === expected.length && timingSafeEqual(found, expected);
}

function demandPinned(caPem: string, pins: readonly string[]): void {
  if (pins.length === 0) return;
  const hashes = certificatesIn(caPem).map((text) => {
    const key = new X509Certificate(text).publicKey.export({ type: 'spki', format: 'der' });
    return `sha256:${createHash('sha256').update(key).digest('hex')}`;
  });
  if (!hashes.some((hash) => pins.includes(hash))) {
    throw new JoinRefused('none of the public keys in cluster-info is pinned');
  }
}

function certificatesIn(text: string): readonly string[] {
  return text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

async function bySupervisor(order: DiscoveryOrder): Promise<Discovered> {
  const { hash, bearer } = rancherToken(order.token);
  const caPem = await withApi(order, undefined, (api) => api.text('GET', '/cacerts'));
  const found = createHash('sha256').update(caPem).digest('hex');
  if (hash !== undefined && hash !== found) {
    throw new JoinRefused('token CA hash does not match the Cluster CA certificate hash');
  }
  const path = `/v1-${order.distribution}/apiservers`;
  const addresses = await withApi(order, caPem, (api) => api.json('GET', path));
  const [first] = listOf(addresses);
  return { server: urlOf(textOf(first) ?? order.server), caPem, bearer };
}

/** `K10<hash>::<id>.<secret>`, or without the first part: then whoever answers is believed. */
function rancherToken(token: string): { readonly hash?: string; readonly bearer: string } {
  const [, hash, rest = token] = /^K10([0-9a-f]{64})::(.*)$/.exec(token) ?? [];
  if (!BOOTSTRAP_TOKEN.test(rest)) {
    // A server's own token is a password of its supervisor; here only bootstrap tokens get in.
    throw new JoinRefused('the token is no bootstrap token');
  }
  return { bearer: rest, ...(hash !== undefined && { hash }) };
}
