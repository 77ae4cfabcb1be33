// SPDX-License-Identifier: Apache-2.0
// A simulated Proxmox VE whose guests join the suite's control plane, and the built pvescaler beside it as processes: any
// number of `serve` and calls of the CLI, all with the same state.
import { type ChildProcess, type ExecFileException, execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished, type TestContext } from 'vitest';
import {
  type ClusterDescription,
  createProxmoxSim,
  defaultCluster,
  type ProxmoxSim,
  type SimRequest,
  serveProxmoxSim,
} from '../../../src/sim/proxmox/index.ts';
import { systemClock, systemRandom } from '../../../src/system/index.ts';
import { root } from '../../support/pvescaler.ts';
import { freePorts } from '../controlplane/free-ports.ts';
import { type ControlPlane, Program, waitUntil } from '../controlplane/index.ts';
import { reap } from '../controlplane/reaper.ts';
import { type CuttingProxy, startProxy } from './cutting-proxy.ts';
import { connect } from './real-guest.ts';

const SHA256 = '5fa5b05e5ec239858c4531485d6023b0896448c2df7c63b34f8dae6ea6051a44';
const IMAGE = 'https://images.example/noble-with-agent.img';
const GIB = 2 ** 30;

export type Distribution = 'k3s' | 'rke2' | 'kubeadm';

export interface SiteOptions {
  readonly plane: ControlPlane;
  readonly distribution: Distribution;
  /** Only kubeadm's can go by the guest agent. */
  readonly via?: 'cloud-init' | 'agent';
  /** Path of the kubeconfig that pvescaler gets; absent = the administrator's. */
  readonly kubeconfig?: string;
  /** One database for all, as on one machine; or one for each, as in pods. */
  readonly stores?: 'one' | 'each its own';
  readonly mostMachines?: number;
  /** Another Proxmox than the simulator in this process. */
  readonly proxmox?: { readonly url: string; readonly fingerprint: string };
  /** Of the test's own context, where tests run side by side. */
  readonly onTestFinished?: TestContext['onTestFinished'];
  /** Absent = standalone. */
  readonly mode?: 'standalone' | 'externalgrpc';
  /** Of the simulated Proxmox; absent = three. */
  readonly hosts?: number;
  readonly guests?: ClusterDescription['guests'];
  /** Lines of YAML added to the config. */
  readonly config?: string;
  /** Whether the ways to Proxmox can be cut. */
  readonly severable?: boolean;
}

export interface Ran {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

export interface Errand {
  readonly ended: Promise<Ran>;
  /** Kills it. */
  readonly stop: () => void;
}

export interface Replica {
  readonly name: string;
  readonly program: Program;
  /** `http://127.0.0.1:PORT` of health and metrics. */
  readonly health: string;
  isLeading(): Promise<boolean>;
}

/** A request that changes something, and who sent it. */
export interface Deed {
  readonly by: string;
  readonly at: number;
  readonly call: string;
}

export interface SimulatedSite {
  readonly sim: ProxmoxSim;
  readonly folder: string;
  /** Everything that was asked of Proxmox beyond looking, in order. */
  readonly deeds: readonly Deed[];
  /** The ways to Proxmox, where they can be cut. */
  readonly wires: readonly CuttingProxy[];
  /** Resolves with the so-manieth creation of a VM, before it is answered. */
  untilCreations(count: number): Promise<void>;
  /** Another `serve`, with a way to Proxmox of its own, so that its deeds are known from others'. */
  serve(name: string): Promise<Replica>;
  cli(...args: readonly string[]): Promise<Ran>;
  /** A call that uses the state of that replica, where each has its own. */
  cliOf(name: string, ...args: readonly string[]): Errand;
  close(): Promise<void>;
}

export const POOL = 'workers';
/** Of a replica's log, when a test has failed. */
const SHOWN_LINES = 40;
const GRACE_MS = 10_000;
const CLI_TIMEOUT_MS = 110_000;

function exitCodeOf(error: ExecFileException | null): number {
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
      urls: [
        { url: IMAGE, size: 600 * 2 ** 20, virtualSize: 3 * GIB, checksums: { sha256: SHA256 } },
      ],
    },
    clock: systemClock,
    random: systemRandom,
    speed: 200,
    connect,
  });
  return new RunningSite(options, folder, sim);
}

/** Asked first: who drives gives its lease back, and the next suite need not wait until it runs out. */
async function endGracefully(program: Program): Promise<void> {
  program.signal('SIGTERM');
  const limit = new AbortController();
  await Promise.race([
    program.ended(),
    systemClock.sleep(GRACE_MS, { signal: limit.signal }).catch(() => undefined),
  ]);
  limit.abort();
  await program.kill();
}

function isCreation({ call }: Deed): boolean {
  return /^POST .*\/qemu$/.test(call);
}

interface ConfigOrder {
  readonly name: string;
  readonly storeOf: string;
  readonly healthPort: number;
}

class RunningSite implements SimulatedSite {
  readonly sim: ProxmoxSim;
  readonly folder: string;
  readonly deeds: Deed[] = [];
  readonly wires: CuttingProxy[] = [];
  readonly #options: SiteOptions;
  readonly #closers: (() => Promise<void>)[] = [];
  readonly #listeners: (() => void)[] = [];

  constructor(options: SiteOptions, folder: string, sim: ProxmoxSim) {
    this.#options = options;
    this.folder = folder;
    this.sim = sim;
  }

  async serve(name: string): Promise<Replica> {
    const [port = 0] = await freePorts(1);
    const config = await this.#configFor({ name, storeOf: name, healthPort: port });
    const health = `http://127.0.0.1:${port}`;
    const program = new Program({
      name,
      path: process.execPath,
      args: [join(root, 'bin/pvescaler.js'), 'serve', '--config', config],
      logFile: join(this.folder, `${name}.log`),
      env: { HOME: '/nonexistent' },
    });
    const atTheEnd = this.#options.onTestFinished ?? onTestFinished;
    atTheEnd(({ task }) => {
      if (task.result?.state !== 'fail') return;
      const tail = program.log().trimEnd().split('\n').slice(-SHOWN_LINES).join('\n');
      process.stderr.write(`--- ${name}\n${tail}\n`);
    });
    this.#closers.push(() => endGracefully(program));
    const metric = async (metricName: string) => {
      const text = await (await fetch(`${health}/metrics`)).text();
      return new RegExp(`^${metricName} 1$`, 'm').test(text);
    };
    return {
      name,
      program,
      health,
      isLeading: () => metric('pvescaler_leader'),
    };
  }

  cli(...args: readonly string[]): Promise<Ran> {
    return this.cliOf('cli', ...args).ended;
  }

  cliOf(name: string, ...args: readonly string[]): Errand {
    let child: ChildProcess | undefined;
    const run = async (): Promise<Ran> => {
      const config = await this.#configFor({ name: `cli-${name}`, storeOf: name, healthPort: 0 });
      return new Promise((resolve) => {
        child = execFile(
          process.execPath,
          [join(root, 'bin/pvescaler.js'), ...args, '--config', config],
          { env: { PATH: process.env['PATH'], HOME: '/nonexistent' }, timeout: CLI_TIMEOUT_MS },
          (error, out, err) => resolve({ exitCode: exitCodeOf(error), out, err }),
        );
        reap(child);
      });
    };
    return { ended: run(), stop: () => void child?.kill('SIGKILL') };
  }

  untilCreations(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#listeners.push(() => {
        if (this.deeds.filter(isCreation).length >= count) resolve();
      });
    });
  }

  #note(deed: Deed): void {
    this.deeds.push(deed);
    for (const listener of this.#listeners) listener();
  }

  async close(): Promise<void> {
    // The last one opened first: replicas go before their way to Proxmox.
    for (const close of this.#closers.toReversed()) await close();
    // Guests whose VMs are still there would go on talking to a control plane that is gone.
    for (const { id } of this.sim.inspect().vms) this.sim.guest(id)?.stop();
  }

  /** Each name has an endpoint of its own; it is opened once. */
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
        this.#note({
          by: name,
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
    if (this.#options.severable !== true) return { url: served.url, fingerprint };
    const wire = await startProxy(served.url);
    this.#closers.push(() => wire.close());
    this.wires.push(wire);
    return { url: wire.url, fingerprint };
  }

  async #configFor({ name, storeOf, healthPort }: ConfigOrder): Promise<string> {
    const { url, fingerprint } = this.#options.proxmox ?? (await this.#endpoint(name));
    const path = join(this.folder, `${name}.yaml`);
    const { plane, kubeconfig = plane.kubeconfig, mostMachines = 10, config = '' } = this.#options;
    const store = this.#options.stores === 'each its own' ? storeOf : 'state';
    writeFileSync(
      path,
      `apiVersion: pvescaler.dev/v1alpha1
mode: ${this.#options.mode ?? 'standalone'}
cluster: { name: test, kubeconfig: ${kubeconfig} }
state: { path: ${this.folder}/state/${store}.db }
http: { health: "127.0.0.1:${healthPort}" }
intervals: { reconcile: 5s }
proxmox:
  lab:
    endpoints: ["${new URL(url).origin}"]
    tls: { fingerprints: ["${fingerprint}"] }
    token: { id: "scaler@pve!sim", secretFile: ${this.folder}/token }
    vmIds: 1250-1300
    storage: { images: local, seeds: shared, disks: local-lvm }
images:
  noble: { url: ${IMAGE}, checksum: "sha256:${SHA256}" }
join: ${JSON.stringify(joinConfig(this.#options))}
pools:
  - name: ${POOL}
    from: { image: noble }
    size: { cpu: 2, memory: 2Gi, disk: 20Gi }
    limits: { min: 0, max: ${mostMachines} }
    labels: { tier: small }
${config}
`,
    );
    return path;
  }
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

export async function ready({ name, program, health }: Replica): Promise<void> {
  await waitUntil(`${name} is ready`, async () => {
    program.demandRunning();
    const answer = await fetch(`${health}/readyz`);
    if (answer.status !== 200) throw new Error(`${await answer.text()}\n${program.log()}`);
    return true;
  });
}

/** What is on the site beside templates and images. */
export function remains({ sim }: SimulatedSite) {
  const { vms, volumes } = sim.inspect();
  return {
    vms: vms.filter(({ config }) => config['template'] !== '1').map(({ id }) => id),
    isos: volumes.filter(({ content }) => content === 'iso').map(({ id }) => id),
  };
}

/** From the task log: how many VMs were made and destroyed. Throws when one was made or destroyed twice. */
export function judgeTasks({ sim }: SimulatedSite) {
  const done = (type: string) => {
    const ids = sim
      .saveState()
      .tasks.filter((task) => task.type === type && /^(OK|WARNINGS)/.test(task.status ?? ''))
      .map(({ id }) => id);
    if (new Set(ids).size < ids.length) throw new Error(`${type} twice: ${ids.join(' ')}`);
    return ids.length;
  };
  return { created: done('qmcreate'), destroyed: done('qmdestroy') };
}
