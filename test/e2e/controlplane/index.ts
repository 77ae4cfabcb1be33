// SPDX-License-Identifier: Apache-2.0
// A real control plane on loopback, for one suite: etcd, kube-apiserver, kube-scheduler and kube-controller-manager, the
// join rules of kubeadm and k3s, and a supervisor for agents of k3s and RKE2. Ready in seconds, gone with the suite.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Api } from './api.ts';
import { createAuthority } from './authority.ts';
import { type ControlPlaneProgram, programPath } from './build.ts';
import { freePorts } from './free-ports.ts';
import { installJoinRules } from './join-rules.ts';
import { Program } from './program.ts';
import { reapFolder } from './reaper.ts';
import {
  apiServerArgs,
  apiServerUrl,
  controllerManagerArgs,
  etcdArgs,
  kubeconfigText,
  LOOPBACK,
  type Site,
  schedulerArgs,
} from './settings.ts';
import { startSupervisor } from './supervisor.ts';
import { waitUntil } from './wait-until.ts';

export { Api, ApiCallFailed, type ApiObject } from './api.ts';
export { Program } from './program.ts';
export { waitUntil } from './wait-until.ts';

export interface ControlPlaneOptions {
  /** How long a node may be silent before it is NotReady. */
  readonly nodeMonitorGraceSeconds?: number;
}

/** By name and groups; or by a token, of a service account or for bootstrapping. Neither = an administrator. */
export interface Caller {
  readonly user?: string;
  readonly groups?: readonly string[];
  readonly token?: string;
}

export interface ControlPlane {
  /** `https://127.0.0.1:PORT` of the API server. */
  readonly server: string;
  /** What a k3s or RKE2 agent is told as its server. */
  readonly supervisor: string;
  readonly caPem: string;
  /** `sha256:…`, as kubeadm pins the CA. */
  readonly caCertHash: string;
  /** `K10…::`, what k3s and RKE2 put before a token. */
  readonly tokenPrefix: string;
  /** Of the cluster: the UID of kube-system. */
  readonly uid: string;
  /** Calls as an administrator. */
  readonly api: Api;
  /** For everything this suite writes; gone when it stops. */
  readonly folder: string;
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** Path of a kubeconfig for somebody else, or by another way (a proxy's URL). */
  kubeconfigFor(who: Caller & { readonly server?: string }): string;
  /** Calls as somebody else. The caller closes it. */
  apiAs(who: Caller): Api;
  /** A service account's token, as a pod would have it. */
  serviceAccountToken(namespace: string, name: string): Promise<string>;
  /** Kills the API server where it stands. */
  killApiServer(): Promise<void>;
  /** Starts it again on the same port; resolves when it is ready. */
  startApiServer(): Promise<void>;
  /** Forgets all history: whoever goes on from an older resource version after the next restart is told 410. */
  compact(): Promise<void>;
  /** The end of a program's output, for a test that failed. */
  log(program: ControlPlaneProgram): string;
  stop(): Promise<void>;
}

export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-e2e-'));
  reapFolder(folder);
  const plane = new RunningControlPlane({
    folder,
    authority: createAuthority('kubernetes'),
    ports: await portsOf(),
    nodeMonitorGraceSeconds: options.nodeMonitorGraceSeconds ?? 20,
  });
  try {
    await plane.start();
  } catch (error) {
    await plane.stop();
    throw error;
  }
  return plane;
}

async function portsOf(): Promise<Site['ports']> {
  const [api = 0, etcd = 0, etcdPeer = 0] = await freePorts(3);
  return { api, etcd, etcdPeer };
}

class RunningControlPlane implements ControlPlane {
  readonly folder: string;
  readonly server: string;
  readonly caPem: string;
  readonly caCertHash: string;
  readonly tokenPrefix: string;
  readonly kubeconfig: string;
  readonly api: Api;
  uid = '';
  supervisor = '';
  readonly #site: Site;
  readonly #programs = new Map<ControlPlaneProgram, Program>();
  readonly #closers: (() => Promise<void>)[] = [];

  constructor(site: Site) {
    const { folder, authority } = site;
    this.#site = site;
    this.folder = folder;
    this.server = apiServerUrl(site);
    this.caPem = authority.certPem;
    this.caCertHash = authority.publicKeyHash;
    this.tokenPrefix = `K10${createHash('sha256').update(this.caPem).digest('hex')}::`;
    const client = authority.client({ commonName: 'admin', organizations: ['system:masters'] });
    this.api = new Api(this.server, { caPem: this.caPem, client });
    this.kubeconfig = join(folder, 'admin.conf');
    writeFileSync(this.kubeconfig, kubeconfigText(this.server, this.caPem, client), {
      mode: 0o600,
    });
  }

  async start(): Promise<void> {
    const site = this.#site;
    this.#run('etcd', etcdArgs(site));
    this.#run('kube-apiserver', apiServerArgs(site));
    const supervisor = await startSupervisor(site.authority.server(), {
      caPem: this.caPem,
      apiServer: this.server,
    });
    this.supervisor = supervisor.url;
    this.#closers.push(() => supervisor.close());
    await this.#untilReady();
    // Only now: both give up or back off for long when nobody answers.
    this.#run('kube-scheduler', schedulerArgs(site));
    this.#run('kube-controller-manager', controllerManagerArgs(site));
    await installJoinRules(this.api, this.caPem);
    this.uid = (await this.api.get('/api/v1/namespaces/kube-system')).metadata.uid;
    // The controller manager makes it; without it no pod can be created.
    await this.#until('the default service account', () =>
      this.api.get('/api/v1/namespaces/default/serviceaccounts/default'),
    );
  }

  apiAs(who: Caller): Api {
    const { caPem } = this;
    const trust =
      who.token === undefined ? { client: this.#certificate(who) } : { bearer: who.token };
    return new Api(this.server, { caPem, ...trust });
  }

  kubeconfigFor(who: Caller & { readonly server?: string }): string {
    const { token, server = this.server } = who;
    const credentials = token === undefined ? this.#certificate(who) : { token };
    const text = kubeconfigText(server, this.caPem, credentials);
    const path = join(this.folder, `${createHash('sha256').update(text).digest('hex')}.conf`);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }

  async serviceAccountToken(namespace: string, name: string): Promise<string> {
    const answer = await this.api.demand<{ readonly status: { readonly token: string } }>(
      'POST',
      `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
      { spec: { expirationSeconds: 3600 } },
    );
    return answer.status.token;
  }

  async killApiServer(): Promise<void> {
    await this.#program('kube-apiserver').kill();
  }

  async startApiServer(): Promise<void> {
    await this.#program('kube-apiserver').restart();
    await this.#untilReady();
  }

  async compact(): Promise<void> {
    const now = await this.#etcd('range', { key: Buffer.from('x').toString('base64') });
    await this.#etcd('compaction', { revision: now.header.revision, physical: true });
  }

  log(program: ControlPlaneProgram): string {
    return this.#program(program).log();
  }

  async stop(): Promise<void> {
    // In no order and without asking: nothing of it is used again.
    await Promise.all([...this.#programs.values()].map((program) => program.kill()));
    await Promise.all(this.#closers.map((close) => close()));
    await this.api.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #certificate({ user, groups = [] }: Caller) {
    const organizations = user === undefined ? ['system:masters'] : groups;
    return this.#site.authority.client({ commonName: user ?? 'admin', organizations });
  }

  async #etcd(call: string, body: unknown): Promise<{ header: { revision: string } }> {
    const answer = await fetch(`http://${LOOPBACK}:${this.#site.ports.etcd}/v3/kv/${call}`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`etcd ${call}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { header: { revision: string } };
  }

  #run(name: ControlPlaneProgram, args: readonly string[]): void {
    const logFile = join(this.folder, `${name}.log`);
    this.#programs.set(name, new Program({ name, path: programPath(name), args, logFile }));
  }

  #program(name: ControlPlaneProgram): Program {
    const program = this.#programs.get(name);
    if (program === undefined) throw new Error(`${name} is not part of this control plane`);
    return program;
  }

  async #untilReady(): Promise<void> {
    await this.#until('a ready API server', async () => {
      return (await this.api.call('GET', '/readyz')).status === 200;
    });
  }

  async #until<T>(what: string, look: () => Promise<T>): Promise<void> {
    await waitUntil(what, () => {
      for (const program of this.#programs.values()) program.demandRunning();
      return look();
    });
  }
}
