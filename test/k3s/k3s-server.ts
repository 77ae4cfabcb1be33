// SPDX-License-Identifier: Apache-2.0
// A real k3s server without an agent of its own, in the network namespace of the tests.
import { execFileSync } from 'node:child_process';
import { createReadStream, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { KubeConfig } from '@kubernetes/client-node';
import { Api, Program, waitUntil } from '../e2e/controlplane/index.ts';

const ADDRESS = '10.99.0.1';
const TLS = 'data/server/tls';

export class K3sServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'k3s-'));
  readonly server = `https://${ADDRESS}:6443`;
  readonly supervisor = this.server;
  readonly kubeconfig = join(this.folder, 'admin.yaml');
  readonly #path: string;
  #program: Program | undefined;
  #api: Api | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  get api(): Api {
    if (this.#api === undefined) throw new Error('the server has not been started');
    return this.#api;
  }

  /** Gives a new server its own CAs, each in a file of three certificates. */
  installCustomCas(): void {
    this.#makeCas('custom', join(this.folder, TLS));
  }

  async start(): Promise<void> {
    mkdirSync(join(this.folder, 'data'), { recursive: true });
    this.#program = new Program({
      name: 'k3s server',
      path: this.#path,
      args: [
        'server',
        `--data-dir=${join(this.folder, 'data')}`,
        `--write-kubeconfig=${this.kubeconfig}`,
        `--node-ip=${ADDRESS}`,
        `--advertise-address=${ADDRESS}`,
        '--disable-agent',
        '--disable-kube-proxy',
        '--disable=coredns,local-storage,metrics-server,servicelb,traefik',
        '--disable-helm-controller',
        '--disable-network-policy',
        '--flannel-backend=none',
        '--egress-selector-mode=disabled',
      ],
      logFile: join(this.folder, 'server.log'),
      env: { HOME: this.folder },
    });
    await this.#waitUntilReady();
  }

  /** Replaces all CAs by new ones that the old ones have signed, and restarts the server. */
  async rotateCas(): Promise<void> {
    const path = join(this.folder, 'rotated');
    this.#makeCas('rotated', join(path, 'tls'), join(this.folder, TLS));
    const args = ['certificate', 'rotate-ca', `--path=${path}`];
    execFileSync(this.#path, [...args, `--data-dir=${join(this.folder, 'data')}`], {
      env: { ...process.env, KUBECONFIG: this.kubeconfig, HOME: this.folder },
      stdio: 'pipe',
    });
    await this.#program?.restart();
    await this.#waitUntilReady();
  }

  /** Number of certificates in the file that joining agents verify. */
  countCas(): number {
    const bundle = readFileSync(join(this.folder, TLS, 'server-ca.crt'), 'utf8');
    return bundle.split('BEGIN CERTIFICATE').length - 1;
  }

  log(): string {
    return this.#program?.log() ?? '';
  }

  async stop(): Promise<void> {
    await this.#program?.kill();
    await this.#api?.close();
  }

  #makeCas(...args: readonly string[]): void {
    execFileSync('bash', [join(import.meta.dirname, 'make-ca.sh'), ...args], { stdio: 'pipe' });
  }

  async #waitUntilReady(): Promise<void> {
    await waitUntil('k3s answers', async () => {
      this.#program?.assertRunning();
      const config = new KubeConfig();
      config.loadFromFile(this.kubeconfig);
      const [cluster, user] = [config.getCurrentCluster(), config.getCurrentUser()];
      const decode = (text = '') => Buffer.from(text, 'base64').toString();
      await this.#api?.close();
      this.#api = new Api(cluster?.server ?? '', {
        caPem: decode(cluster?.caData),
        client: { certPem: decode(user?.certData), keyPem: decode(user?.keyData) },
      });
      return (await this.#api.call('GET', '/readyz')).status === 200;
    });
    await waitUntil('the CA is published', () =>
      this.api.get('/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt'),
    );
  }
}

/** Serves the program under every path, as a download mirror. */
export async function serveDownloads(path: string): Promise<{ url: string; server: Server }> {
  const server = createServer((_, response) => {
    pipeline(createReadStream(path), response, () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, ADDRESS, resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { url: `http://${ADDRESS}:${port}`, server };
}
