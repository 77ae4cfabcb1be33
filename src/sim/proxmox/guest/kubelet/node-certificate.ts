// SPDX-License-Identifier: Apache-2.0
// A node's certificate by a bootstrap token: ask for it, wait until somebody approves and signs.
import type { Clock } from '../../../../ports/clock.ts';
import { requestCertificate } from '../../x509/certificate-request.ts';
import { isRecord, listOf, recordOf, textOf } from '../plain-values.ts';
import type { Discovered } from './discovery.ts';
import type { NodeIdentity } from './identity.ts';
import { JoinRefused, type OpenConnection, ServerApi } from './server-api.ts';

const PATH = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const LOOK_EVERY_MS = 500;
/** Nobody has approved it by then: ask again, in case the request was lost. */
const PATIENCE_MS = 60_000;

export interface CertificateOrder {
  readonly nodeName: string;
  readonly found: Discovered;
  readonly connect: OpenConnection;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function obtainCertificate(order: CertificateOrder): Promise<NodeIdentity> {
  const { found, connect, signal } = order;
  const { server, caPem, bearer } = found;
  const transport = await connect({ caPem });
  const api = new ServerApi({ transport, server, bearer, signal });
  try {
    const { requestPem, keyPem } = requestCertificate({
      commonName: `system:node:${order.nodeName}`,
      organization: 'system:nodes',
    });
    const created = await api.json('POST', PATH, {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: 'node-csr-' },
      spec: {
        request: Buffer.from(requestPem).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['digital signature', 'client auth'],
      },
    });
    const name = textOf(recordOf(recordOf(created)['metadata'])['name']) ?? '';
    const certPem = await signed(api, name, order);
    return { nodeName: order.nodeName, server, caPem, certPem, keyPem };
  } finally {
    await api.close();
  }
}

async function signed(
  api: ServerApi,
  name: string,
  { clock, signal }: CertificateOrder,
): Promise<string> {
  const giveUpAt = clock.monotonic() + PATIENCE_MS;
  while (clock.monotonic() < giveUpAt) {
    const status = recordOf(recordOf(await api.json('GET', `${PATH}/${name}`))['status']);
    const certificate = textOf(status['certificate']);
    if (certificate !== undefined) return Buffer.from(certificate, 'base64').toString();
    const refusal = listOf(status['conditions'])
      .filter(isRecord)
      .find(({ type }) => type === 'Denied' || type === 'Failed');
    if (refusal !== undefined) throw new JoinRefused(`certificate request ${name} was refused`);
    await clock.sleep(LOOK_EVERY_MS, { signal });
  }
  throw new Error(`nobody approved certificate request ${name}`);
}
