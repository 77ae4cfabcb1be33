// SPDX-License-Identifier: Apache-2.0
// A simulated Proxmox VE whose guests join the suite's control plane, and the built pvescaler as processes: any number of
// `serve` replicas and CLI commands.
import { type ChildProcess, type ExecFileException, execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished, type TestContext } from 'vitest';
import {
  type ClusterDescription,
  createProxmoxSim,
  defaultCluster,
  type ProxmoxSim,
  type SimOptions,
  type SimRequest,
  serveProxmoxSim,
} from '../../../src/sim/proxmox/index.ts';
import { systemClock, systemRandom } from '../../../src/system/index.ts';
import { root } from '../../support/pvescaler.ts';
import { freePorts } from '../controlplane/free-ports.ts';
import { type ControlPlane, Program, waitUntil } from '../controlplane/index.ts';
import { killOnExit } from '../controlplane/reaper.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { connect } from './real-guest.ts';

const SHA256 = '5fa5b05e5ec239858c4531485d6023b0896448c2df7c63b34f8dae6ea6051a44';
const IMAGE = 'https://images.example/noble-with-agent.img';
const GIB = 2 ** 30;

export type Distribution = 'k3s' | 'rke2' | 'kubeadm';

export interface SiteOptions {
  readonly plane: Pick<ControlPlane, 'folder' | 'kubeconfig' | 'server' | 'supervisor'>;
  readonly distribution: Distribution;
  /** The `join` of the config; absent = that of the distribution. */
  readonly join?: Readonly<Record<string, unknown>>;
  /** Only kubeadm can join through the guest agent. */
  readonly via?: 'cloud-init' | 'agent';
  /** Path of pvescaler's kubeconfig; absent = the administrator's. */
  readonly kubeconfig?: string;
  /** One database for all replicas, as on one machine; one for each, as in pods; or records in the cluster. */
  readonly stores?: 'shared' | 'separate' | 'kubernetes';
  readonly maxMachines?: number;
  /** A Proxmox in another process instead of the simulator in this one. */
  readonly proxmox?: { readonly url: string; readonly fingerprint: string };
  /** From the test context, where tests run concurrently. */
  readonly onTestFinished?: TestContext['onTestFinished'];
  /** Absent = standalone. */
  readonly mode?: 'standalone' | 'externalgrpc';
  /** Number of simulated hosts; absent = three. */
  readonly hosts?: number;
  readonly guests?: ClusterDescription['guests'];
  /** VMs that exist at the start. */
  readonly vms?: ClusterDescription['vms'];
  readonly simulator?: Pick<SimOptions, 'speed' | 'createGuest'>;
  /** `intervals.scan` of the config; absent = the default. */
  readonly scan?: string;
  /** `cluster.poolObjects` of the config. */
  readonly poolObjects?: boolean;
  /** YAML lines added to the config. */
  readonly config?: string;
  /** The config file has no pool. */
  readonly hasNoPools?: boolean;
  /** Mode externalgrpc: each replica has a port of its own, without TLS. */
  readonly hasOwnGrpc?: boolean;
  /** Whether the connections to Proxmox go through fault proxies. */
  readonly hasFaultProxies?: boolean;
}

export interface CliResult {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

export interface CliProcess {
  readonly ended: Promise<CliResult>;
  /** Kills the process. */
  readonly stop: () => void;
}

export interface Replica {
  readonly name: string;
  readonly program: Program;
  /** `http://127.0.0.1:PORT` of health and metrics. */
  readonly health: string;
  /** `127.0.0.1:PORT` in mode externalgrpc with `hasOwnGrpc`. */
  readonly grpc: string;
  isLeading(): Promise<boolean>;
}

/** A request that changes something, and the replica that sent it. */
export interface WriteRequest {
  readonly replica: string;
  readonly at: number;
  readonly call: string;
}

export interface SimulatedSite {
  readonly sim: ProxmoxSim;
  readonly folder: string;
  /** Of processes that are started from now on. */
  stores: NonNullable<SiteOptions['stores']>;
  /** All write requests to Proxmox, in order. */
  readonly writes: readonly WriteRequest[];
  /** The proxies in front of Proxmox, if enabled. */
  readonly proxies: readonly FaultProxy[];
  /** Resolves with the request that creates the VM number `count`, before it is answered. */
  waitForCreations(count: number): Promise<void>;
  /** Starts a `serve` replica with its own Proxmox endpoint, so that its requests are distinguishable. */
  serve(name: string): Promise<Replica>;
  runCli(...args: readonly string[]): Promise<CliResult>;
  /** Starts a CLI command on the state of that replica, where each has its own. */
  startCli(name: string, ...args: readonly string[]): CliProcess;
  close(): Promise<void>;
}

export const POOL = 'workers';
/** Lines of a replica's log that are shown when a test fails. */
const LOG_TAIL_LINES = 40;
const GRACE_MS = 10_000;
/** Only ends a command that hangs: the machine may be loaded. */
const CLI_TIMEOUT_MS = 240_000;

function readExitCode(error: ExecFileException | null): number {
  if (error === null) return 0;
  return typeof error.code === 'number' ? error.code : -1;
}

export async function startSite(options: SiteOptions): Promise<SimulatedSite> {
  const folder = mkdtempSync(join(options.plane.folder, 'site-'));
  writeFileSync(join(folder, 'token'), '00000000-0000-4000-8000-000000000001\n', { mode: 0o600 });
  mkdirSync(join(folder, 'state'));
  const sim = createProxmoxSim({
    cluster: {
      ...defaultCluster(options.hosts ?? 3),
      ...(options.guests !== undefined && { guests: options.guests }),
      ...(options.vms !== undefined && { vms: options.vms }),
      urls: [
        { url: IMAGE, size: 600 * 2 ** 20, virtualSize: 3 * GIB, checksums: { sha256: SHA256 } },
      ],
    },
    clock: systemClock,
    random: systemRandom,
    speed: 200,
    connect,
    ...options.simulator,
  });
  return new RunningSite(options, folder, sim);
}

/** Sends SIGTERM first, so that a leader releases its lease and the next suite need not wait for its expiry. */
async function stopGracefully(program: Program): Promise<void> {
  program.sendSignal('SIGTERM');
  const limit = new AbortController();
  await Promise.race([
    program.waitForExit(),
    systemClock.sleep(GRACE_MS, { signal: limit.signal }).catch(() => undefined),
  ]);
  limit.abort();
  await program.kill();
}

function isCreation({ call }: WriteRequest): boolean {
  return /^POST .*\/qemu$/.test(call);
}

interface ConfigOptions {
  readonly name: string;
  readonly storeOf: string;
  readonly healthPort: number;
  readonly grpcPort: number;
}

class RunningSite implements SimulatedSite {
  readonly sim: ProxmoxSim;
  readonly folder: string;
  readonly writes: WriteRequest[] = [];
  readonly proxies: FaultProxy[] = [];
  stores: NonNullable<SiteOptions['stores']>;
  readonly #options: SiteOptions;
  readonly #closers: (() => Promise<void>)[] = [];
  readonly #listeners: (() => void)[] = [];

  constructor(options: SiteOptions, folder: string, sim: ProxmoxSim) {
    this.#options = options;
    this.folder = folder;
    this.sim = sim;
    this.stores = options.stores ?? 'shared';
  }

  async serve(name: string): Promise<Replica> {
    const [port = 0, grpcPort = 0] = await freePorts(2);
    const config = await this.#configFor({ name, storeOf: name, healthPort: port, grpcPort });
    const health = `http://127.0.0.1:${port}`;
    const program = new Program({
      name,
      path: process.execPath,
      args: [join(root, 'bin/pvescaler.js'), 'serve', '--config', config],
      logFile: join(this.folder, `${name}.log`),
      env: { HOME: '/nonexistent' },
    });
    const onFinished = this.#options.onTestFinished ?? onTestFinished;
    onFinished(({ task }) => {
      if (task.result?.state !== 'fail') return;
      const tail = program.log().trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
      process.stderr.write(`--- ${name}\n${tail}\n`);
    });
    this.#closers.push(() => stopGracefully(program));
    const metric = async (metricName: string) => {
      const text = await (await fetch(`${health}/metrics`)).text();
      return new RegExp(`^${metricName} 1$`, 'm').test(text);
    };
    return {
      name,
      program,
      health,
      grpc: `127.0.0.1:${grpcPort}`,
      isLeading: () => metric('pvescaler_leader'),
    };
  }

  runCli(...args: readonly string[]): Promise<CliResult> {
    return this.startCli('cli', ...args).ended;
  }

  startCli(name: string, ...args: readonly string[]): CliProcess {
    let child: ChildProcess | undefined;
    const run = async (): Promise<CliResult> => {
      const ports = { healthPort: 0, grpcPort: 0 };
      const config = await this.#configFor({ name: `cli-${name}`, storeOf: name, ...ports });
      return new Promise((resolve) => {
        child = execFile(
          process.execPath,
          [join(root, 'bin/pvescaler.js'), ...args, '--config', config],
          { env: { PATH: process.env['PATH'], HOME: '/nonexistent' }, timeout: CLI_TIMEOUT_MS },
          (error, out, err) => resolve({ exitCode: readExitCode(error), out, err }),
        );
        killOnExit(child);
      });
    };
    return { ended: run(), stop: () => void child?.kill('SIGKILL') };
  }

  waitForCreations(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#listeners.push(() => {
        if (this.writes.filter(isCreation).length >= count) resolve();
      });
    });
  }

  #recordWrite(write: WriteRequest): void {
    this.writes.push(write);
    for (const listener of this.#listeners) listener();
  }

  async close(): Promise<void> {
    // In reverse order: replicas stop before their Proxmox endpoint.
    for (const close of this.#closers.toReversed()) await close();
    // Guests of remaining VMs would keep calling a control plane that no longer exists.
    for (const { id } of this.sim.inspect().vms) this.sim.guest(id)?.stop();
  }

  /** One Proxmox endpoint per name, opened on first use. */
  readonly #endpoints = new Map<
    string,
    Promise<{ url: string; fingerprint: string | undefined }>
  >();

  #endpoint(name: string): Promise<{ url: string; fingerprint: string | undefined }> {
    const known = this.#endpoints.get(name) ?? this.#open(name);
    this.#endpoints.set(name, known);
    return known;
  }

  async #open(name: string): Promise<{ url: string; fingerprint: string | undefined }> {
    const handle = (request: SimRequest) => {
      if (request.method !== 'GET') {
        const [path = ''] = request.target.split('?');
        this.#recordWrite({
          replica: name,
          at: systemClock.monotonic(),
          call: `${request.method} ${path}`,
        });
      }
      return this.sim.handle(request);
    };
    const served = await serveProxmoxSim(
      { ...this.sim, handle },
      { listen: '127.0.0.1:0', tls: true },
    );
    this.#closers.push(() => served.close());
    const { fingerprint } = served;
    if (this.#options.hasFaultProxies !== true) return { url: served.url, fingerprint };
    const proxy = await startFaultProxy(served.url);
    this.#closers.push(() => proxy.close());
    this.proxies.push(proxy);
    return { url: proxy.url, fingerprint };
  }

  #stateOf(storeOf: string): string {
    const store = this.stores === 'shared' ? 'state' : storeOf;
    const kubernetes = this.stores === 'kubernetes' ? ', kubernetes: {}' : '';
    return `{ path: ${this.folder}/state/${store}.db${kubernetes} }`;
  }

  #grpcOf(port: number): string {
    if (this.#options.hasOwnGrpc !== true) return '';
    return `grpc: { listen: "127.0.0.1:${port}", insecure: true }`;
  }

  async #configFor({ name, storeOf, healthPort, grpcPort }: ConfigOptions): Promise<string> {
    const { url, fingerprint } = this.#options.proxmox ?? (await this.#endpoint(name));
    const path = join(this.folder, `${name}.yaml`);
    const { plane, kubeconfig = plane.kubeconfig, maxMachines = 10 } = this.#options;
    const { scan, config = '', poolObjects = false } = this.#options;
    writeFileSync(
      path,
      `apiVersion: pvescaler.dev/v1alpha1
mode: ${this.#options.mode ?? 'standalone'}
cluster: { name: test, kubeconfig: ${kubeconfig}${poolObjects ? ', poolObjects: true' : ''} }
state: ${this.#stateOf(storeOf)}
${this.#grpcOf(grpcPort)}
http: { health: "127.0.0.1:${healthPort}" }
intervals: { reconcile: 5s${scan === undefined ? '' : `, scan: ${scan}`} }
proxmox:
  lab:
    endpoints: ["${new URL(url).origin}"]
    tls: { fingerprints: ["${fingerprint}"] }
    token: { id: "scaler@pve!sim", secretFile: ${this.folder}/token }
    vmIds: 1250-1399
    storage: { images: local, seeds: shared, disks: local-lvm }
images:
  noble: { url: ${IMAGE}, checksum: "sha256:${SHA256}" }
join: ${JSON.stringify(this.#options.join ?? joinConfig(this.#options))}
${this.#options.hasNoPools === true ? '' : pools(maxMachines)}
${config}
`,
    );
    return path;
  }
}

function pools(maxMachines: number): string {
  return `pools:
  - name: ${POOL}
    from: { image: noble }
    size: { cpu: 2, memory: 2Gi, disk: 20Gi }
    limits: { min: 0, max: ${maxMachines} }
    labels: { tier: small }`;
}

function joinConfig({ plane, distribution, via = 'cloud-init' }: SiteOptions) {
  if (distribution === 'kubeadm') {
    return {
      kubeadm: {
        server: plane.server,
        token: 'auto',
        via,
        packages: ['containerd', 'kubeadm', 'kubelet'],
      },
    };
  }
  const version = distribution === 'k3s' ? 'v1.34.4+k3s1' : 'v1.34.4+rke2r1';
  return { [distribution]: { server: plane.supervisor, version, token: 'auto' } };
}

export async function waitUntilReady({ name, program, health }: Replica): Promise<void> {
  await waitUntil(`${name} is ready`, async () => {
    program.assertRunning();
    const answer = await fetch(`${health}/readyz`);
    if (answer.status !== 200) throw new Error(`${await answer.text()}\n${program.log()}`);
    return true;
  });
}

/** VMs and seeds on the site, without templates and images. */
export function listLeftovers({ sim }: SimulatedSite) {
  const { vms, volumes } = sim.inspect();
  return {
    vms: vms.filter(({ config }) => config['template'] !== '1').map(({ id }) => id),
    isos: volumes.filter(({ content }) => content === 'iso').map(({ id }) => id),
  };
}

export function listVmsOfPool({ sim }: SimulatedSite, pool: string): readonly number[] {
  return sim
    .inspect()
    .vms.filter(({ config }) => config['name']?.startsWith(`${pool}-`) === true)
    .map(({ id }) => id);
}

/** Counts created and destroyed VMs from the task log. Throws when one was created or destroyed twice. */
export function countVmTasks({ sim }: SimulatedSite) {
  const done = (type: string) => {
    const ids = sim
      .saveState()
      .tasks.filter((task) => task.type === type && /^(OK|WARNINGS)/.test(task.status ?? ''))
      .map(({ id }) => id);
    if (new Set(ids).size < ids.length)
      throw new Error(`${type} ran twice for a VM: ${ids.join(' ')}`);
    return ids.length;
  };
  return { created: done('qmcreate'), destroyed: done('qmdestroy') };
}
