// SPDX-License-Identifier: Apache-2.0
// A simulated site on a socket, a folder with config and state, and the built program as separate processes.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RECONCILE_LEASE_MS } from '../../src/model/lease.ts';
import type { Machine } from '../../src/model/machine.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import {
  createProxmoxSim,
  makeCertificate,
  type ProxmoxSim,
  type SavedState,
  type ServedSim,
  SimConnectionError,
  type SimRequest,
  type SimResponse,
  serveProxmoxSim,
} from '../../src/sim/proxmox/index.ts';
import { readMachineRecords } from '../../src/store/index.ts';
import { callName } from './call-name.ts';
import { EPOCH, FastClock, SPEED } from './fast-clock.ts';
import type { KillPoint } from './kill-points.ts';
import { LabKubernetes, type SavedObject } from './lab-kubernetes.ts';
import { configText, isUnmanagedVm, matrixCluster, type SourceName, TOKEN } from './sources.ts';

const root = join(import.meta.dirname, '../..');
/** Only ends a failed run: the machine may be loaded. */
const MAX_RUN_MS = 300_000;
/** In addition to the speed of the clock. */
const SIM_SPEED = 8;

const certificate = makeCertificate(['localhost', '127.0.0.1']);

export interface ProcessResult {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly out: string;
  readonly err: string;
  readonly writes: number;
}

/** The state a lab can start from. */
export interface Snapshot {
  readonly folder: string;
  readonly state: SavedState;
  readonly objects: readonly SavedObject[];
}

/** Where the records are. */
export type Records = 'sqlite' | 'kubernetes';

interface LabOptions {
  readonly source: SourceName;
  readonly records: Records;
  readonly seed: number;
  readonly from?: Snapshot | undefined;
}

export class Lab {
  readonly folder = mkdtempSync(join(tmpdir(), 'pvescaler-matrix-'));
  readonly sim: ProxmoxSim;
  readonly calls: string[] = [];
  readonly #clock = new FastClock();
  /** Largest number of owned VMs at one time. */
  maxVms = 0;
  /** Snapshot of the unmanaged VMs at the start. */
  unmanagedBefore = '';
  #served: ServedSim | undefined;
  #kubernetes: LabKubernetes | undefined;
  #child: ChildProcess | undefined;
  #killPoint: KillPoint | undefined;
  #callsLeft = 0;

  private constructor(seed: number) {
    this.sim = createProxmoxSim({
      cluster: matrixCluster(),
      clock: this.#clock,
      random: new SeededRandom(seed),
      speed: SIM_SPEED,
    });
  }

  static async open({ source, records, seed, from }: LabOptions): Promise<Lab> {
    const lab = new Lab(seed);
    if (from !== undefined) {
      cpSync(join(from.folder, 'state'), join(lab.folder, 'state'), { recursive: true });
      lab.sim.loadState(structuredClone(from.state));
    }
    lab.unmanagedBefore = snapshotUnmanagedVms(lab.sim);
    const { cert, key } = certificate;
    const handle = (request: SimRequest) => lab.#handle(request);
    lab.#served = await serveProxmoxSim(
      { ...lab.sim, handle },
      { listen: '127.0.0.1:0', tls: { cert, key } },
    );
    const { folder } = lab;
    const isInKubernetes = records === 'kubernetes';
    if (isInKubernetes) await lab.#startKubernetes(seed, from?.objects ?? []);
    const { fingerprint } = certificate;
    const site = { folder, url: lab.#served.url, fingerprint, isInKubernetes };
    writeFileSync(join(folder, 'config.yaml'), configText(source, site));
    writeFileSync(join(folder, 'token'), `${TOKEN}\n`, { mode: 0o600 });
    return lab;
  }

  get statePath(): string {
    return join(this.folder, 'state/state.db');
  }

  snapshot(): Snapshot {
    const objects = this.#kubernetes?.save() ?? [];
    return { folder: this.folder, state: this.sim.saveState(), objects };
  }

  /** Their records. */
  machines(): readonly Machine[] {
    return this.#kubernetes?.machines() ?? readMachineRecords(this.statePath);
  }

  async #startKubernetes(seed: number, objects: readonly SavedObject[]): Promise<void> {
    this.#kubernetes = await LabKubernetes.start({
      clock: this.#clock,
      seed,
      objects,
      onWrite: (method, path) => this.#countCall(callName(method, path)),
    });
    writeFileSync(join(this.folder, 'kubeconfig'), this.#kubernetes.kubeconfig);
  }

  /** The file with the cluster id is beside the database and is kept. */
  loseDatabase(): void {
    for (const end of ['', '-wal', '-shm']) rmSync(`${this.statePath}${end}`, { force: true });
    this.#kubernetes?.lose();
  }

  /** Advances the clock until the lease of a killed process has expired. */
  expireLease(): void {
    this.#clock.aheadMs += RECONCILE_LEASE_MS;
  }

  /** Runs one process until it exits, or is killed at `point`. */
  async scale(to: number, point?: KillPoint): Promise<ProcessResult> {
    const report = join(this.folder, 'writes');
    rmSync(report, { force: true });
    this.#killPoint = point;
    this.#callsLeft = point?.kind === 'unseen' ? point.number : 0;
    const args = ['pool', 'scale', 'workers', '--to', `${to}`];
    const child = spawn(
      process.execPath,
      [
        '--import',
        this.#preload(report, point),
        join(root, 'bin/pvescaler.js'),
        ...args,
        '--config',
        join(this.folder, 'config.yaml'),
      ],
      {
        cwd: this.folder,
        env: { PATH: process.env['PATH'], HOME: '/nonexistent' },
        stdio: ['ignore', 'pipe', 'pipe'],
        timeout: MAX_RUN_MS,
        killSignal: 'SIGTERM',
      },
    );
    this.#child = child;
    const out = collectText(child.stdout);
    const err = collectText(child.stderr);
    const [exitCode, signal] = (await once(child, 'close')) as [number | null, string | null];
    this.#killPoint = undefined;
    const writes = existsSync(report) ? Number(readFileSync(report, 'utf8')) : 0;
    return { exitCode, signal, out: out(), err: err(), writes };
  }

  async close(): Promise<void> {
    await this.#served?.close();
    await this.#kubernetes?.close();
    this.sim.faults.clear();
    for (const { id } of this.sim.inspect().vms) this.sim.externalChanges.stop(id);
    rmSync(this.folder, { recursive: true, force: true });
  }

  #preload(report: string, point: KillPoint | undefined): string {
    const url = new URL('./child-preload.ts', import.meta.url);
    url.searchParams.set('speed', `${SPEED}`);
    url.searchParams.set('epoch', `${EPOCH}`);
    url.searchParams.set('ahead', `${this.#clock.aheadMs}`);
    url.searchParams.set('report', report);
    if (point?.kind === 'write') url.searchParams.set('write', `${point.number}`);
    if (point?.kind === 'seen') {
      url.searchParams.set('call', point.call);
      url.searchParams.set('number', `${point.number}`);
    }
    return url.href;
  }

  async #handle(request: SimRequest): Promise<SimResponse> {
    const answer = await this.sim.handle(request);
    const isKilled = this.#countCall(callName(request.method, request.target));
    this.maxVms = Math.max(this.maxVms, listOwnedVms(this.sim).length);
    if (isKilled) throw new SimConnectionError('ECONNRESET');
    return answer;
  }

  /** Returns whether the process was killed before it received the response. */
  #countCall(name: string): boolean {
    this.calls.push(name);
    const killPoint = this.#killPoint;
    if (killPoint?.kind !== 'unseen' || killPoint.call !== name) return false;
    this.#callsLeft -= 1;
    if (this.#callsLeft > 0) return false;
    this.#child?.kill('SIGKILL');
    return true;
  }
}

export function listOwnedVms(sim: ProxmoxSim) {
  return sim.inspect().vms.filter(({ id }) => !isUnmanagedVm(id));
}

/** The unmanaged VMs and their disks as text, for comparison. */
export function snapshotUnmanagedVms(sim: ProxmoxSim): string {
  const { vms, volumes } = sim.inspect();
  const unmanaged = vms.filter(({ id }) => isUnmanagedVm(id));
  const disks = volumes.filter(({ vmId }) => vmId !== undefined && isUnmanagedVm(vmId));
  return JSON.stringify([unmanaged, disks.map(({ id }) => id).toSorted()]);
}

function collectText(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  return () => text;
}
