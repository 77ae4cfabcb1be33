// SPDX-License-Identifier: Apache-2.0
// `pvescaler sim kubernetes` as a user runs it: guests of `pvescaler sim proxmox` join it, and pods run on them.
import { type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { readText } from '../../src/ports/contract/transport.contract.ts';
import { openHttpTransport } from '../../src/system/index.ts';
import { aLab, start } from '../support/lab.ts';
import { aFolder, pvescaler } from '../support/pvescaler.ts';

interface Kubeconfig {
  readonly clusters: readonly {
    readonly cluster: { readonly server: string; readonly 'certificate-authority-data': string };
  }[];
  readonly users: readonly { readonly user: { readonly token: string } }[];
}

async function startKubernetes(...args: readonly string[]) {
  const kubeconfig = join(aFolder(), 'kubeconfig');
  const child = start([
    ...'sim kubernetes --listen 127.0.0.1:0 --json --kubeconfig-out'.split(' '),
    kubeconfig,
    ...args,
  ]);
  const [line] = (await once(createInterface(child.stdout!), 'line')) as [string];
  const { url, caCertHash } = JSON.parse(line) as { url: string; caCertHash: string };
  const { clusters, users } = JSON.parse(readFileSync(kubeconfig, 'utf8')) as Kubeconfig;
  const caPem = Buffer.from(clusters[0]!.cluster['certificate-authority-data'], 'base64');
  const tls = { kind: 'verify', caPem: caPem.toString() } as const;
  const transport = await openHttpTransport({ tls });
  onTestFinished(() => transport.close());
  const request = async (path: string, options: { post?: object; token?: string } = {}) => {
    const { post, token = users[0]!.user.token } = options;
    const response = await transport.request({
      method: post === undefined ? 'GET' : 'POST',
      url: `${url}${path}`,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      ...(post && { body: JSON.stringify(post) }),
      timeoutMs: 10_000,
    });
    return { status: response.status, body: JSON.parse(await readText(response.body)) as unknown };
  };
  return { child, url, caCertHash, kubeconfig, request };
}

async function waitUntil(check: () => Promise<boolean>): Promise<void> {
  while (!(await check())) await new Promise((resolve) => setTimeout(resolve, 50));
}

async function stop(child: ChildProcess): Promise<unknown> {
  child.kill('SIGTERM');
  return once(child, 'exit');
}

it('runs pods of a simulated cluster on machines that pvescaler creates', async () => {
  const kubernetes = await startKubernetes();
  const { kubeconfig, request, url } = kubernetes;
  expect(statSync(kubeconfig).mode & 0o077).toBe(0);
  const lab = await aLab({
    join: 'k3s',
    config: `cluster: { kubeconfig: ${kubeconfig} }\njoin:\n  k3s: { server: "${url}", version: v1.34.4+k3s1, token: auto }\n`,
  });
  const template = {
    metadata: { labels: { app: 'web' } },
    spec: { containers: [{ name: 'main', image: 'x' }] },
  };
  const selector = { matchLabels: { app: 'web' } };
  const deployment = { metadata: { name: 'web' }, spec: { replicas: 2, selector, template } };
  await request('/apis/apps/v1/namespaces/default/deployments', { post: deployment });
  const countPods = async (phase: string) => {
    const { body } = await request(`/api/v1/pods?fieldSelector=status.phase%3D${phase}`);
    return (body as { items: unknown[] }).items.length;
  };
  await waitUntil(async () => (await countPods('Pending')) === 2);
  expect(lab.run('pool', 'scale', 'workers', '--to', '1')).toMatchObject({ exitCode: 0 });
  await waitUntil(async () => (await countPods('Running')) === 2);
  expect(await stop(kubernetes.child)).toEqual([0, null]);
});

it('has nodes without machines, and refuses a wrong token', async () => {
  const { child, request, caCertHash } = await startKubernetes('--fake-nodes', '2');
  expect(caCertHash).toMatch(/^sha256:[0-9a-f]{64}$/);
  const nodes = await request('/api/v1/nodes');
  expect((nodes.body as { items: unknown[] }).items).toHaveLength(2);
  expect(await request('/api/v1/nodes', { token: 'wrong' })).toMatchObject({ status: 401 });
  await stop(child);
});

it('reports an address on which it cannot listen', () => {
  expect(pvescaler(['sim', 'kubernetes', '--listen', '192.0.2.1:1'])).toMatchObject({
    exitCode: 2,
    err: expect.stringContaining('cannot listen on 192.0.2.1:1'),
  });
  expect(pvescaler(['sim', 'kubernetes', '--listen', 'here'])).toMatchObject({ exitCode: 2 });
});
