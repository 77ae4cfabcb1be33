// SPDX-License-Identifier: Apache-2.0
// Requests a node certificate with a bootstrap token and waits until it is approved and signed.
import type { Clock } from '../../../../ports/clock.ts';
import { requestCertificate } from '../../../x509/certificate-request.ts';
import { asList, asRecord, asText, isRecord } from '../untyped-values.ts';
import type { DiscoveredServer } from './discovery.ts';
import type { NodeIdentity } from './identity.ts';
import { JoinRefusedError, type OpenConnection, ServerApi } from './server-api.ts';

const CSR_PATH = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const POLL_INTERVAL_MS = 500;
/** After this time without approval the caller creates a new request, in case this one was lost. */
const APPROVAL_TIMEOUT_MS = 60_000;

export interface NodeCertificateRequest {
  readonly nodeName: string;
  readonly discovered: DiscoveredServer;
  readonly connect: OpenConnection;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export async function obtainCertificate(request: NodeCertificateRequest): Promise<NodeIdentity> {
  const { discovered, connect, signal } = request;
  const { server, caPem, bearer } = discovered;
  const transport = await connect({ caPem });
  const api = new ServerApi({ transport, server, bearer, signal });
  try {
    const { requestPem, keyPem } = requestCertificate({
      commonName: `system:node:${request.nodeName}`,
      organizations: ['system:nodes'],
    });
    const created = await api.requestJson('POST', CSR_PATH, {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { generateName: 'node-csr-' },
      spec: {
        request: Buffer.from(requestPem).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['digital signature', 'client auth'],
      },
    });
    const name = asText(asRecord(asRecord(created)['metadata'])['name']) ?? '';
    const certPem = await waitForCertificate(api, name, request);
    return { nodeName: request.nodeName, server, caPem, certPem, keyPem };
  } finally {
    await api.close();
  }
}

async function waitForCertificate(
  api: ServerApi,
  name: string,
  { clock, signal }: NodeCertificateRequest,
): Promise<string> {
  const deadline = clock.monotonic() + APPROVAL_TIMEOUT_MS;
  while (clock.monotonic() < deadline) {
    const status = asRecord(
      asRecord(await api.requestJson('GET', `${CSR_PATH}/${name}`))['status'],
    );
    const certificate = asText(status['certificate']);
    if (certificate !== undefined) return Buffer.from(certificate, 'base64').toString();
    const rejection = asList(status['conditions'])
      .filter(isRecord)
      .find(({ type }) => type === 'Denied' || type === 'Failed');
    if (rejection !== undefined)
      throw new JoinRefusedError(`certificate request ${name} was denied or failed`);
    await clock.sleep(POLL_INTERVAL_MS, { signal });
  }
  throw new Error(
    `certificate request ${name} was not approved within ${APPROVAL_TIMEOUT_MS / 1000} s`,
  );
}
