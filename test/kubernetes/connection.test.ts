// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type ConnectionSource,
  type ConnectionTls,
  openKubernetesCluster,
} from '../../src/kubernetes/index.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Transport, TransportRequest } from '../../src/ports/transport.ts';
import { runProgram } from '../../src/system/index.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pvescaler-connection-'));
});
afterEach(() => rm(folder, { recursive: true }));

/** Only ends a failed test: the machine may be loaded. */
const LIMIT = { timeout: 240_000 };
const SERVER = 'https://kube.example:6443';
const CA = '-----BEGIN CERTIFICATE-----\nY2E=\n-----END CERTIFICATE-----\n';

async function writeKubeconfig(user: object, cluster: object = {}): Promise<string> {
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

/** Responds to every request with a namespace and records the requests. */
class RecordingTransport implements Transport {
  readonly requests: TransportRequest[] = [];
  /** Whether to respond with 401 to this `Authorization` header. */
  readonly #isRefused: (authorization: string) => boolean;

  constructor(isRefused: (authorization: string) => boolean) {
    this.#isRefused = isRefused;
  }

  request(request: TransportRequest) {
    this.requests.push(request);
    if (this.#isRefused(request.headers?.['authorization'] ?? '')) {
      const body = streamOf(JSON.stringify({ kind: 'Status', code: 401 }));
      return Promise.resolve({ status: 401, reason: 'Unauthorized', headers: {}, body });
    }
    const isWatch = request.url.includes('watch=1');
    const text = JSON.stringify({ metadata: { uid: 'u-1', resourceVersion: '1' }, items: [] });
    const body = isWatch ? emptyUntilAborted(request.signal) : streamOf(text);
    return Promise.resolve({ status: 200, reason: 'OK', headers: {}, body });
  }

  close() {
    return Promise.resolve();
  }
}

async function* streamOf(text: string): AsyncIterable<Uint8Array> {
  yield await Promise.resolve(new TextEncoder().encode(text));
}

async function* emptyUntilAborted(signal: AbortSignal | undefined): AsyncIterable<Uint8Array> {
  await new Promise<void>((resolve) => {
    if (signal?.aborted === true) return resolve();
    signal?.addEventListener('abort', () => resolve());
  });
  yield* [];
}

function connect(path: string, context?: string) {
  return connectFrom({ kind: 'kubeconfig', path, context });
}

async function connectFrom(source: ConnectionSource, clock = new VirtualClock()) {
  const opened: { readonly tls: ConnectionTls; readonly transport: RecordingTransport }[] = [];
  const rejectedTokens = new Set<string>();
  const cluster = await openKubernetesCluster({
    source,
    runProgram,
    openTransport: (tls) => {
      const transport = new RecordingTransport((authorization) =>
        rejectedTokens.has(authorization),
      );
      opened.push({ tls, transport });
      return Promise.resolve(transport);
    },
    clock,
    random: new SeededRandom(1),
  });
  onTestFinished(() => cluster.close());
  expect(await cluster.uid()).toBe('u-1');
  const headers = () => opened.at(-1)?.transport.requests.at(-1)?.headers ?? {};
  return { cluster, opened, headers, rejectedTokens };
}

const NODE = { name: 'x', uid: 'y' };

describe('a connection from a kubeconfig', () => {
  it('uses server, CA and bearer token', async () => {
    const { cluster, opened, headers } = await connect(await writeKubeconfig({ token: 't-1' }));
    expect(opened).toHaveLength(1);
    expect(opened[0]?.tls).toEqual({ caPem: CA, isInsecure: false, serverName: undefined });
    expect(headers()['authorization']).toBe('Bearer t-1');
    expect(opened[0]?.transport.requests.every(({ url }) => url.startsWith(`${SERVER}/`))).toBe(
      true,
    );
    await cluster.close();
  });

  it('uses the client certificate and the TLS server name', async () => {
    const data = (text: string) => Buffer.from(text).toString('base64');
    const user = { 'client-certificate-data': data('cert'), 'client-key-data': data('key') };
    const path = await writeKubeconfig(user, { 'tls-server-name': 'kubernetes' });
    const { cluster, opened, headers } = await connect(path);
    expect(opened[0]?.tls).toMatchObject({
      client: { certPem: 'cert', keyPem: 'key' },
      serverName: 'kubernetes',
    });
    expect(headers()['authorization']).toBeUndefined();
    await cluster.close();
  });

  it('uses user name and password', async () => {
    const path = await writeKubeconfig({ username: 'u', password: 'p' });
    const { cluster, headers } = await connect(path);
    expect(headers()['authorization']).toBe(`Basic ${Buffer.from('u:p').toString('base64')}`);
    await cluster.close();
  });

  it('opens a new transport when the exec plugin returns a new certificate', async () => {
    const plugin = join(folder, 'plugin');
    const write = (certificate: string, key = 'k') => {
      const status = { token: 'p-1', clientCertificateData: certificate, clientKeyData: key };
      // Expired: the plugin runs again for each request.
      const expirationTimestamp = '2020-01-01T00:00:00Z';
      const output = JSON.stringify({ status: { ...status, expirationTimestamp } });
      return writeFile(plugin, `#!/bin/sh\necho '${output}'\n`);
    };
    await write('c-1');
    await chmod(plugin, 0o755);
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: plugin };
    const { cluster, opened, headers } = await connect(await writeKubeconfig({ exec }));
    expect(headers()['authorization']).toBe('Bearer p-1');
    await write('c-2');
    await cluster.deleteNode({ name: 'x', uid: 'y' });
    expect(opened.map(({ tls }) => tls.client?.certPem)).toEqual(['c-1', 'c-2']);
    // Only the key changes: certificate and key are written one after the other.
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
  ])('is rejected with %s', async (_what, user, cluster) => {
    await expect(connect(await writeKubeconfig(user, cluster))).rejects.toMatchObject({
      code: 'CONFIG_UNREADABLE',
    });
  });

  it('is rejected when the file or the context does not exist', async () => {
    const path = await writeKubeconfig({});
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

async function writePlugin(script: string): Promise<string> {
  const plugin = join(folder, 'plugin');
  await writeFile(plugin, `#!/bin/sh\n${script}\n`);
  await chmod(plugin, 0o755);
  return plugin;
}

function echoToken(token: string): string {
  return `echo '${JSON.stringify({ status: { token } })}'`;
}

describe('an exec credential plugin', () => {
  async function connectWithPlugin(script: string) {
    const command = await writePlugin(script);
    const env = [{ name: 'OWN', value: 'mine' }];
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command, env };
    const path = await writeKubeconfig({ exec });
    const clock = new VirtualClock();
    return { clock, ...(await connectFrom({ kind: 'kubeconfig', path }, clock)) };
  }

  it('receives KUBERNETES_EXEC_INFO and runs once while its credentials are valid', async () => {
    const script = `echo "$OWN $KUBERNETES_EXEC_INFO" >> ${join(folder, 'runs')}\n${echoToken('p-1')}`;
    const { cluster, headers } = await connectWithPlugin(script);
    await Promise.all([1, 2, 3].map(() => cluster.deleteNode(NODE)));
    expect(headers()['authorization']).toBe('Bearer p-1');
    const runs = (await readFile(join(folder, 'runs'), 'utf8')).trim().split('\n');
    expect(runs).toHaveLength(1);
    expect(runs[0]).toMatch(/^mine \{"apiVersion":"client.authentication.k8s.io\/v1"/);
  });

  it('runs again when its credentials are rejected', async () => {
    const { cluster, headers, rejectedTokens } = await connectWithPlugin(echoToken('p-1'));
    await writePlugin(echoToken('p-2'));
    await cluster.deleteNode(NODE);
    expect(headers()['authorization']).toBe('Bearer p-1');
    rejectedTokens.add('Bearer p-1');
    await cluster.deleteNode(NODE);
    expect(headers()['authorization']).toBe('Bearer p-2');
    rejectedTokens.add('Bearer p-2');
    await expect(cluster.deleteNode(NODE)).rejects.toMatchObject({ code: 'CREDENTIALS_REFUSED' });
  });

  it('is killed with its child processes when it hangs', async () => {
    const { clock, cluster, rejectedTokens } = await connectWithPlugin(echoToken('p-1'));
    await writePlugin(`sleep 600 & echo $! > ${join(folder, 'pid')}; wait`);
    rejectedTokens.add('Bearer p-1');
    const failure = cluster.deleteNode(NODE).catch((error: Error) => error);
    const pid = await readPid();
    await clock.advance(12_000);
    expect(await failure).toMatchObject({
      code: 'REQUEST_TIMED_OUT',
      message: expect.stringContaining('plugin returned no credentials within 12000 ms'),
      facts: { requestSent: false },
    });
    await vi.waitUntil(() => !isRunning(pid), LIMIT);
  });

  it('is killed when the cluster is closed', async () => {
    const { cluster, rejectedTokens } = await connectWithPlugin(echoToken('p-1'));
    await writePlugin(`sleep 600 & echo $! > ${join(folder, 'pid')}; wait`);
    rejectedTokens.add('Bearer p-1');
    const failure = cluster.deleteNode(NODE).catch((error: Error) => error);
    const pid = await readPid();
    await cluster.close();
    expect(await failure).toMatchObject({ code: 'CANCELLED' });
    await vi.waitUntil(() => !isRunning(pid), LIMIT);
  });

  it.each([
    ['returns no credentials', 'echo {}'],
    ['prints no JSON', 'echo hunter2'],
    ['fails', 'echo hunter2 >&2; exit 3'],
  ])('that %s fails the connection', async (_what, script) => {
    const failure: unknown = await connectWithPlugin(script).catch((error: Error) => error);
    expect(failure).toMatchObject({ code: 'CREDENTIALS_REFUSED', facts: { requestSent: false } });
    expect((failure as Error).message).not.toContain('hunter2');
  });
});

/** Of the process that the plugin has started. */
async function readPid(): Promise<number> {
  const read = () => readFile(join(folder, 'pid'), 'utf8').catch(() => '');
  return Number(await vi.waitUntil(read, LIMIT));
}

/** A zombie process counts as not running. */
function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

describe('a connection with the service account of a pod', () => {
  async function connectInPod(token: string) {
    const files = join(folder, 'var/run/secrets/kubernetes.io/serviceaccount');
    await mkdir(files, { recursive: true });
    await writeFile(join(files, 'ca.crt'), CA);
    const rotate = (next: string) => writeFile(join(files, 'token'), `${next}\n`);
    await rotate(token);
    vi.stubEnv('KUBERNETES_SERVICE_HOST', 'kube.example');
    vi.stubEnv('KUBERNETES_SERVICE_PORT', '6443');
    onTestFinished(() => void vi.unstubAllEnvs());
    return { rotate, ...(await connectFrom({ kind: 'in-cluster', root: folder })) };
  }

  it('uses server, CA and token of the pod', async () => {
    const { opened, headers } = await connectInPod('t-1');
    expect(opened[0]?.tls).toMatchObject({ caPem: CA, isInsecure: false });
    expect(headers()['authorization']).toBe('Bearer t-1');
  });

  it('uses the rotated token', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const { cluster, headers, rotate } = await connectInPod('t-1');
    await rotate('t-2');
    vi.setSystemTime(Date.now() + 61_000);
    await cluster.deleteNode(NODE);
    expect(headers()['authorization']).toBe('Bearer t-2');
  });

  it('reads the token again immediately when it is rejected', async () => {
    const { cluster, headers, rotate, rejectedTokens } = await connectInPod('t-1');
    await rotate('t-2');
    rejectedTokens.add('Bearer t-1');
    await cluster.deleteNode(NODE);
    expect(headers()['authorization']).toBe('Bearer t-2');
    rejectedTokens.add('Bearer t-2');
    await expect(cluster.deleteNode(NODE)).rejects.toMatchObject({ code: 'CREDENTIALS_REFUSED' });
    await rotate('t-3');
    await cluster.deleteNode(NODE);
    expect(headers()['authorization']).toBe('Bearer t-3');
  });
});
