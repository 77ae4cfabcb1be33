// SPDX-License-Identifier: Apache-2.0
// Starts a simulated cluster for `pvescaler sim kubernetes` and the demo: API server with HTTPS, controllers, scheduler.
import { createHash, X509Certificate } from 'node:crypto';
import type { Clock } from '../../ports/clock.ts';
import { InvalidRequest } from '../../ports/errors.ts';
import type { Random } from '../../ports/random.ts';
import { createAuthority } from './authority.ts';
import { FAKE_NODE_ANNOTATION } from './controllers/fake-kubelet.ts';
import type { ControllerOptions } from './controllers/index.ts';
import { listen } from './serve.ts';
import { KubernetesSim } from './sim.ts';

export interface StartKubernetesOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** `host:port`; port 0 takes any free port. */
  readonly listen: string;
  /** Number of nodes without a machine, whose pods run without containers. */
  readonly fakeNodes: number;
  readonly controllers?: ControllerOptions;
}

export interface RunningKubernetes {
  readonly sim: KubernetesSim;
  readonly url: string;
  readonly caPem: string;
  /** `sha256:…` of the CA's public key, as `kubeadm join` pins it. */
  readonly caCertHash: string;
  /** A kubeconfig of an administrator. */
  readonly kubeconfig: string;
  close(): Promise<void>;
}

const SERVER_NAMES = [
  '127.0.0.1',
  'localhost',
  '10.96.0.1',
  'kubernetes',
  'kubernetes.default.svc',
];

export async function startKubernetesSim(
  options: StartKubernetesOptions,
): Promise<RunningKubernetes> {
  const { clock, random, controllers = {} } = options;
  const { host, port } = parseListen(options.listen);
  const authority = createAuthority();
  const { certPem: caPem } = authority;
  const names = [...new Set([...SERVER_NAMES, host])].filter((name) => name !== '0.0.0.0');
  const tls = { ...authority.server(names), caPem };
  let sim: KubernetesSim | undefined;
  const started = Promise.withResolvers<KubernetesSim>();
  const served = await listen({
    host,
    port,
    tls,
    sim: () =>
      sim ?? { fetch: async (request, peer) => (await started.promise).fetch(request, peer) },
  }).catch((cause: unknown) => {
    throw new InvalidRequest(
      'REQUEST_INVALID',
      `cannot listen on ${options.listen}: ${String(cause)}`,
      {
        hint: 'Set another address with --listen, for instance 127.0.0.1:0 for any free port.',
        cause,
      },
    );
  });
  const adminToken = random.uuid();
  const join = { server: served.url, authority };
  sim = new KubernetesSim({ clock, random, adminToken, controllers, join });
  started.resolve(sim);
  addFakeNodes(sim, options.fakeNodes);
  const stop = new AbortController();
  const running = sim.run(stop.signal);
  return {
    sim,
    url: served.url,
    caPem,
    caCertHash: hashPublicKey(caPem),
    kubeconfig: formatKubeconfig({ server: served.url, caPem, adminToken }),
    close: async () => {
      stop.abort();
      await running;
      await served.close();
    },
  };
}

function hashPublicKey(certPem: string): string {
  const spki = new X509Certificate(certPem).publicKey.export({ type: 'spki', format: 'der' });
  return `sha256:${createHash('sha256').update(spki).digest('hex')}`;
}

function parseListen(text: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]*)):(\d+)$/.exec(text) ?? [];
  if (port === undefined) {
    throw new InvalidRequest('USAGE', `--listen takes host:port, not '${text}'`);
  }
  const host = bracketed ?? plain;
  return { host: host === undefined || host === '' ? '0.0.0.0' : host, port: Number(port) };
}

function addFakeNodes(sim: KubernetesSim, count: number): void {
  for (let index = 1; index <= count; index += 1) {
    const name = `fake-${index}`;
    sim.create('v1', 'nodes', {
      metadata: {
        name,
        labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' },
        annotations: { [FAKE_NODE_ANNOTATION]: 'fake' },
      },
    });
  }
}

interface KubeconfigFields {
  readonly server: string;
  readonly caPem: string;
  readonly adminToken: string;
}

/** JSON is YAML. */
function formatKubeconfig({ server, caPem, adminToken }: KubeconfigFields): string {
  const cluster = {
    server,
    'certificate-authority-data': Buffer.from(caPem).toString('base64'),
  };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'sim', cluster }],
    users: [{ name: 'sim', user: { token: adminToken } }],
    contexts: [{ name: 'sim', context: { cluster: 'sim', user: 'sim' } }],
    'current-context': 'sim',
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
