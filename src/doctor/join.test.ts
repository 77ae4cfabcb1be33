// SPDX-License-Identifier: Apache-2.0
import { rootCertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { joinChecks } from './join.ts';

type JoinContext = Parameters<typeof joinChecks>[0];

describe('the check of a bootstrap token', () => {
  it('presents it to no server whose CA has another hash than the config', async () => {
    const [pem = ''] = rootCertificates;
    const presented: unknown[] = [];
    const adapters = {
      readSecret: () => Promise.resolve({ value: 'abcdef.0123456789abcdef', warnings: [] }),
      probe: (_url: string, { authorization }: { readonly authorization?: string }) => {
        if (authorization !== undefined) presented.push(authorization);
        const data = Buffer.from(pem).toString('base64');
        return Promise.resolve({ status: 200, body: `certificate-authority-data: ${data}` });
      },
    };
    const token = { kind: 'static', source: { kind: 'environment', name: 'T' } };
    const kubeadm = { server: 'https://10.0.0.1:6443', token, caCertHashes: ['sha256:00'] };
    const config = { cluster: {}, join: { kubeadm }, pools: [{ join: 'kubeadm' }] };
    const checks = joinChecks({ context: { adapters }, config } as unknown as JoinContext);
    const outcomes = await Promise.all(checks.map(({ run }) => run(new AbortController().signal)));
    expect(outcomes.map(({ status }) => status)).toEqual(['failure', 'skipped']);
    expect(presented).toEqual([]);
  });
});
