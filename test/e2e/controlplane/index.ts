// SPDX-License-Identifier: Apache-2.0
// A real control plane on loopback for one suite: etcd, kube-apiserver, kube-scheduler and kube-controller-manager, the
// join rules of kubeadm and k3s, and a supervisor for agents of k3s and RKE2. It starts in seconds and ends with the suite.
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Api } from './api.ts';
import { type ControlPlaneProgram, programPath } from './build.ts';
import { createAuthority } from './certificate-authority.ts';
import { freePorts } from './free-ports.ts';
import { installJoinRules } from './join-rules.ts';
import { Program } from './program.ts';
import { removeFolderOnExit } from './reaper.ts';
import {
  apiServerArgs,
  apiServerUrl,
  auditLogPath,
  type ControlPlaneSettings,
  controllerManagerArgs,
  etcdArgs,
  kubeconfigText,
  LOOPBACK,
  schedulerArgs,
} from './settings.ts';
import { startSupervisor } from './supervisor.ts';
import { waitUntil } from './wait-until.ts';

export { Api, ApiCallFailed, type ApiObject } from './api.ts';
export { NODE_TOKEN_GROUPS } from './join-rules.ts';
export { Program } from './program.ts';
export { waitUntil } from './wait-until.ts';

export interface ControlPlaneOptions {
  /** Time without a heartbeat until a node is NotReady. */
  readonly nodeMonitorGraceSeconds?: number;
  /** Name of this host for guests that cannot connect to its loopback; it is in cluster-info and in the certificate. */
  readonly nameForGuests?: string;
  /** Rules of an audit policy: what is recorded, for `readAuditLog`. */
  readonly auditRules?: readonly object[];
}

/** A request in the audit log, with the fields that the suites read. */
export interface AuditEntry {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef: {
    readonly resource: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus: { readonly code: number };
  readonly requestObject?: unknown;
}

/** A user with groups, or the token of a service account or a bootstrap token. Neither = an administrator. */
export interface Caller {
  readonly user?: string;
  readonly groups?: readonly string[];
  readonly token?: string;
}

export interface ControlPlane {
  /** `https://127.0.0.1:PORT` of the API server. */
  readonly server: string;
  /** URL of the API server for guests; `server` unless `nameForGuests` is given. */
  readonly serverForGuests: string;
  /** Server URL for a k3s or RKE2 agent. */
  readonly supervisor: string;
  readonly caPem: string;
  /** `sha256:…`, as kubeadm pins the CA. */
  readonly caCertHash: string;
  /** `K10…::`, the prefix of a token for k3s and RKE2. */
  readonly tokenPrefix: string;
  /** UID of the cluster, which is the UID of kube-system. */
  readonly uid: string;
  /** Calls as an administrator. */
  readonly api: Api;
  /** Folder for the files of this suite; deleted by `stop`. */
  readonly folder: string;
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** Path of a kubeconfig for another caller, or for another server URL (a proxy). */
  kubeconfigFor(caller: Caller & { readonly server?: string }): string;
  /** Calls as another user. The caller must close it. */
  apiAs(caller: Caller): Api;
  /** Token of a service account, as a pod has it. */
  serviceAccountToken(namespace: string, name: string): Promise<string>;
  /** Kills the API server with SIGKILL. */
  killApiServer(): Promise<void>;
  /** Starts it again on the same port; resolves when it is ready. */
  startApiServer(): Promise<void>;
  /** Compacts etcd: after the next restart a watch from an older resource version gets 410. */
  compact(): Promise<void>;
  /** The requests recorded so far. */
  readAuditLog(): readonly AuditEntry[];
  /** Output of a program, for a failed test. */
  log(program: ControlPlaneProgram): string;
  stop(): Promise<void>;
}

export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const { nameForGuests } = options;
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-e2e-'));
  removeFolderOnExit(folder);
  const plane = new RunningControlPlane({
    folder,
    authority: createAuthority('kubernetes', nameForGuests === undefined ? [] : [nameForGuests]),
    nameForGuests,
    ports: await reservePorts(),
    nodeMonitorGraceSeconds: options.nodeMonitorGraceSeconds ?? 20,
    auditRules: options.auditRules,
  });
  try {
    await plane.start();
  } catch (error) {
    await plane.stop();
    throw error;
  }
  return plane;
}

async function reservePorts(): Promise<ControlPlaneSettings['ports']> {
  const [api = 0, etcd = 0, etcdPeer = 0] = await freePorts(3);
  return { api, etcd, etcdPeer };
}

class RunningControlPlane implements ControlPlane {
  readonly folder: string;
  readonly server: string;
  readonly serverForGuests: string;
  readonly caPem: string;
  readonly caCertHash: string;
  readonly tokenPrefix: string;
  readonly kubeconfig: string;
  readonly api: Api;
  uid = '';
  supervisor = '';
  readonly #site: ControlPlaneSettings;
  readonly #programs = new Map<ControlPlaneProgram, Program>();
  readonly #closers: (() => Promise<void>)[] = [];

  constructor(site: ControlPlaneSettings) {
    const { folder, authority } = site;
    this.#site = site;
    this.folder = folder;
    this.server = apiServerUrl(site);
    this.serverForGuests = `https://${site.nameForGuests ?? LOOPBACK}:${site.ports.api}`;
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
    await this.#waitUntilReady();
    // Started last: both exit or back off for long without an API server.
    this.#run('kube-scheduler', schedulerArgs(site));
    this.#run('kube-controller-manager', controllerManagerArgs(site));
    await installJoinRules(this.api, this.caPem, this.serverForGuests);
    this.uid = (await this.api.get('/api/v1/namespaces/kube-system')).metadata.uid;
    // The controller manager creates it; without it no pod can be created.
    await this.#waitUntil('the default service account', () =>
      this.api.get('/api/v1/namespaces/default/serviceaccounts/default'),
    );
  }

  apiAs(caller: Caller): Api {
    const { caPem } = this;
    const trust =
      caller.token === undefined ? { client: this.#certificate(caller) } : { bearer: caller.token };
    return new Api(this.server, { caPem, ...trust });
  }

  kubeconfigFor(caller: Caller & { readonly server?: string }): string {
    const { token, server = this.server } = caller;
    const credentials = token === undefined ? this.#certificate(caller) : { token };
    const text = kubeconfigText(server, this.caPem, credentials);
    const path = join(this.folder, `${createHash('sha256').update(text).digest('hex')}.conf`);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  }

  async serviceAccountToken(namespace: string, name: string): Promise<string> {
    const answer = await this.api.callOrThrow<{ readonly status: { readonly token: string } }>(
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
    await this.#waitUntilReady();
  }

  async compact(): Promise<void> {
    const now = await this.#etcd('range', { key: Buffer.from('x').toString('base64') });
    await this.#etcd('compaction', { revision: now.header.revision, physical: true });
  }

  readAuditLog(): readonly AuditEntry[] {
    const lines = readFileSync(auditLogPath(this.#site), 'utf8').split('\n');
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as AuditEntry);
  }

  log(program: ControlPlaneProgram): string {
    return this.#program(program).log();
  }

  async stop(): Promise<void> {
    // Killed in any order: nothing of it is used again.
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

  async #waitUntilReady(): Promise<void> {
    await this.#waitUntil('a ready API server', async () => {
      return (await this.api.call('GET', '/readyz')).status === 200;
    });
  }

  async #waitUntil<T>(what: string, check: () => Promise<T>): Promise<void> {
    await waitUntil(what, () => {
      for (const program of this.#programs.values()) program.assertRunning();
      return check();
    });
  }
}
