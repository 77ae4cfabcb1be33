// SPDX-License-Identifier: Apache-2.0
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ConnectionTls, openKubernetesCluster } from '../../src/kubernetes/index.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Transport, TransportRequest } from '../../src/ports/transport.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pvescaler-connection-'));
});
afterEach(() => rm(folder, { recursive: true }));

const SERVER = 'https://kube.example:6443';
const CA = '-----BEGIN CERTIFICATE-----\nY2E=\n-----END CERTIFICATE-----\n';

async function kubeconfig(user: object, cluster: object = {}): Promise<string> {
  const path = join(folder, 'kubeconfig');
  const ca = Buffer.from(CA).toString('base64');
  await writeFile(
    path,
    JSON.stringify({
      clusters: [
        { name: 'c', cluster: { server: SERVER, 'certificate-authority-data': ca, ...cluster } },
      ],
      users: [{ name: 'u', user }],
      contexts: [
        { name: 'one', context: { cluster: 'c', user: 'u' } },
        { name: 'two', context: { cluster: 'none', user: 'u' } },
      ],
      'current-context': 'one',
    }),
  );
  return path;
}

/** Answers every request with a namespace, and remembers how it was asked. */
class Recorder implements Transport {
  readonly requests: TransportRequest[] = [];

  request(request: TransportRequest) {
    this.requests.push(request);
    const isWatch = request.url.includes('watch=1');
    const text = JSON.stringify({ metadata: { uid: 'u-1', resourceVersion: '1' }, items: [] });
    const body = isWatch ? silence(request.signal) : once(text);
    return Promise.resolve({ status: 200, reason: 'OK', headers: {}, body });
  }

  close() {
    return Promise.resolve();
  }
}

async function* once(text: string): AsyncIterable<Uint8Array> {
  yield await Promise.resolve(new TextEncoder().encode(text));
}

async function* silence(signal: AbortSignal | undefined): AsyncIterable<Uint8Array> {
  await new Promise<void>((resolve) => {
    if (signal?.aborted === true) return resolve();
    signal?.addEventListener('abort', () => resolve());
  });
  yield* [];
}

async function connect(path: string, context?: string) {
  const opened: { readonly tls: ConnectionTls; readonly transport: Recorder }[] = [];
  const cluster = await openKubernetesCluster({
    source: { kind: 'kubeconfig', path, context },
    openTransport: (tls) => {
      const transport = new Recorder();
      opened.push({ tls, transport });
      return Promise.resolve(transport);
    },
    clock: new VirtualClock(),
    random: new SeededRandom(1),
  });
  expect(await cluster.uid()).toBe('u-1');
  const headers = () => opened.at(-1)?.transport.requests.at(-1)?.headers ?? {};
  return { cluster, opened, headers };
}

describe('a kubeconfig', () => {
  it('gives server, CA and bearer token', async () => {
    const { cluster, opened, headers } = await connect(await kubeconfig({ token: 't-1' }));
    expect(opened).toHaveLength(1);
    expect(opened[0]?.tls).toEqual({ caPem: CA, isInsecure: false, serverName: undefined });
    expect(headers()['authorization']).toBe('Bearer t-1');
    expect(opened[0]?.transport.requests.every(({ url }) => url.startsWith(`${SERVER}/`))).toBe(
      true,
    );
    expect(await cluster.serverCa()).toBe(CA);
    await cluster.close();
  });

  it('gives a client certificate, and the name to check', async () => {
    const data = (text: string) => Buffer.from(text).toString('base64');
    const user = { 'client-certificate-data': data('cert'), 'client-key-data': data('key') };
    const path = await kubeconfig(user, { 'tls-server-name': 'kubernetes' });
    const { cluster, opened, headers } = await connect(path);
    expect(opened[0]?.tls).toMatchObject({
      client: { certPem: 'cert', keyPem: 'key' },
      serverName: 'kubernetes',
    });
    expect(headers()['authorization']).toBeUndefined();
    await cluster.close();
  });

  it('gives name and password', async () => {
    const path = await kubeconfig({ username: 'u', password: 'p' });
    const { cluster, headers } = await connect(path);
    expect(headers()['authorization']).toBe(`Basic ${Buffer.from('u:p').toString('base64')}`);
    await cluster.close();
  });

  it('asks a plugin, and makes new connections for a new certificate', async () => {
    const plugin = join(folder, 'plugin');
    const write = (certificate: string, key = 'k') => {
      const status = { token: 'p-1', clientCertificateData: certificate, clientKeyData: key };
      // Over already: asked again each time.
      const expirationTimestamp = '2020-01-01T00:00:00Z';
      const answer = JSON.stringify({ status: { ...status, expirationTimestamp } });
      return writeFile(plugin, `#!/bin/sh\necho '${answer}'\n`);
    };
    await write('c-1');
    await chmod(plugin, 0o755);
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: plugin };
    const { cluster, opened, headers } = await connect(await kubeconfig({ exec }));
    expect(headers()['authorization']).toBe('Bearer p-1');
    await write('c-2');
    await cluster.deleteNode({ name: 'x', uid: 'y' });
    expect(opened.map(({ tls }) => tls.client?.certPem)).toEqual(['c-1', 'c-2']);
    // Who writes two files does so one after the other.
    await write('c-2', 'k-2');
    await cluster.deleteNode({ name: 'x', uid: 'y' });
    expect(opened.at(-1)?.tls.client).toEqual({ certPem: 'c-2', keyPem: 'k-2' });
    await writeFile(plugin, "#!/bin/sh\necho 'hunter2' >&2\nexit 1\n");
    const failure = await cluster
      .deleteNode({ name: 'x', uid: 'y' })
      .catch((error: Error) => error);
    expect(failure).toMatchObject({ code: 'CREDENTIALS_REFUSED', facts: { requestSent: false } });
    expect(String(failure)).not.toContain('hunter2');
    await cluster.close();
  });

  it.each([
    ['no server', {}, { server: '' }],
    ['plain HTTP', {}, { server: 'http://kube.example' }],
    ['a proxy', {}, { 'proxy-url': 'http://proxy.example' }],
  ])('is refused with %s', async (_what, user, cluster) => {
    await expect(connect(await kubeconfig(user, cluster))).rejects.toMatchObject({
      code: 'CONFIG_UNREADABLE',
    });
  });

  it('is refused when it, or its context, is not there', async () => {
    const path = await kubeconfig({});
    await expect(connect(path, 'three')).rejects.toMatchObject({
      code: 'CONFIG_UNREADABLE',
      message: expect.stringContaining('three'),
    });
    await expect(connect(path, 'two')).rejects.toMatchObject({ code: 'CONFIG_UNREADABLE' });
    await expect(connect(join(folder, 'none'))).rejects.toMatchObject({
      code: 'CONFIG_UNREADABLE',
    });
    await writeFile(path, 'clusters: [');
    await expect(connect(path)).rejects.toMatchObject({ code: 'CONFIG_UNREADABLE' });
  });
});
