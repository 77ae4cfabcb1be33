// SPDX-License-Identifier: Apache-2.0
// The environment of one seed: simulated regions, the installations with their records and clusters, and the pvescaler
// processes that start, crash and stop.
import { createFleet, type Fleet, type PassReport } from '../../src/fleet/index.ts';
import { CrashingProcess, type CrashPoint } from '../../src/fleet/testing/crashing-process.ts';
import { type Lease, RECONCILE_LEASE } from '../../src/model/lease.ts';
import type { Machine, MachineId } from '../../src/model/machine.ts';
import { PvescalerError } from '../../src/ports/errors.ts';
import { SimulatedCrash } from '../../src/ports/fakes/memory-store.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { FaultRule } from '../../src/sim/proxmox/index.ts';
import { simulatedRegion } from '../proxmox/simulated-region.ts';
import { CallMonitor, type MonitoredProcess } from './call-monitor.ts';
import { type FaultTarget, findColumn } from './faults.ts';
import { Installation, type SoakProcess } from './installation.ts';
import { checkInvariants, snapshotVm } from './invariants.ts';
import { SoakCluster } from './kubernetes.ts';
import type { Mutation } from './mutations.ts';
import { observeLeases } from './observe-leases.ts';
import {
  describeInstallations,
  describeRegion,
  EDGE,
  featuresOf,
  hostsOf,
  type InstallationDescription,
  LAB,
  type SeedFeatures,
} from './soak-settings.ts';
import { SoakState } from './soak-state.ts';

const LEASE_MS = 120_000;
const REASON = { by: 'soak', reason: 'scaling event of the soak plan' };

/** `signal` stops immediately, `finish` after the current pass. */
export interface StopSignals {
  readonly signal: AbortSignal;
  readonly finish: AbortSignal;
}

interface ProcessParts {
  readonly process: MonitoredProcess;
  readonly holder: string;
  readonly crashPoint: CrashPoint;
}

/** Undefined when the pass failed. */
type PassOutcome = PassReport | 'crashed' | undefined;

export class SoakEnvironment extends SoakState {
  readonly random: SeededRandom;
  readonly seed: number;
  readonly features: SeedFeatures;
  faultCount = 0;
  externalChangeCount = 0;
  /** Whether a fault left something that only an administrator can delete. */
  needsCleanup = false;
  readonly faultNames = new Map<FaultRule, string>();
  readonly #mutation: Mutation;
  readonly #pendingRecords: Promise<void>[] = [];
  #processCount = 0;

  constructor(seed: number, mutation: Mutation = {}) {
    super();
    this.seed = seed;
    this.#mutation = mutation;
    this.random = new SeededRandom(seed);
    this.features = featuresOf(seed);
    for (const name of this.features.edge ? [LAB, EDGE] : [LAB]) this.#addRegion(name);
    for (const description of describeInstallations(seed)) this.#addInstallation(description);
  }

  #addRegion(name: string): void {
    const endpoints = hostsOf(name).map((host) => `https://${host}:8006`);
    const region = simulatedRegion(
      { cluster: describeRegion(name), clock: this.clock, hostClock: this.hostClock },
      { region: name, endpoints },
      'changes',
    );
    this.regions.set(name, region);
    this.#observeFaults(name);
    for (const { id } of region.sim.inspect().vms) this.protectVm(name, id);
  }

  #addInstallation(description: InstallationDescription): void {
    const { clock, seed } = this;
    const sims = new Map([...this.regions].map(([name, { sim }]) => [name, sim]));
    const { cluster: uid, server } = description;
    const cluster = this.features.kubernetes
      ? new SoakCluster({ clock, seed, uid, server, sims })
      : undefined;
    this.installations.push(new Installation(description, { clock, cluster }));
  }

  protectVm(region: string, vmId: number): void {
    const inspection = this.region(region).sim.inspect();
    this.unmanagedVms.set(`${region}/${vmId}`, snapshotVm(inspection, vmId));
  }

  startProcess(
    installation: Installation,
    crashPoint: CrashPoint = { kind: 'never' },
  ): SoakProcess {
    this.#processCount += 1;
    const monitored: MonitoredProcess = { stall: undefined, isKilled: false, leaseUntil: 0 };
    const holder = `process-${this.#processCount}`;
    const fleet = this.#createFleet(installation, { process: monitored, holder, crashPoint });
    const process: SoakProcess = Object.assign(monitored, { holder, fleet });
    installation.processes.add(process);
    return process;
  }

  /** Stops all processes of the installation, stalled ones too. */
  killProcesses({ processes }: Installation): void {
    for (const process of processes) process.isKilled = true;
    processes.clear();
  }

  #createFleet(installation: Installation, { process, holder, crashPoint }: ProcessParts): Fleet {
    const { settings, cluster, store, id } = installation;
    const mutation = this.#mutation;
    const monitor = new CallMonitor({ state: this, installation, process });
    const crashing = new CrashingProcess(store, this.region(LAB).hypervisor, crashPoint);
    const regions = new Map(
      Object.keys(settings.regions).map((name) => {
        const monitored = monitor.wrapHypervisor(name, this.region(name).hypervisor);
        return [name, crashing.wrap(monitored)];
      }),
    );
    const hypervisors = [...regions].map(([region, hypervisor]) => {
      const owner = { installation: id, regions, region };
      return [region, mutation.hypervisor?.(hypervisor, owner) ?? hypervisor] as const;
    });
    const joined = cluster && crashing.wrap(monitor.wrapCluster(cluster));
    const onLease = (lease: Lease) => this.#recordLease(installation, process, lease);
    const observed = observeLeases(crashing.store, onLease);
    return createFleet({
      clock: this.clock,
      store: mutation.store?.(observed) ?? observed,
      hypervisors: new Map(hypervisors),
      random: new SeededRandom(this.seed * 1_000 + this.#processCount),
      settings: { ...(mutation.settings?.(settings) ?? settings), holder },
      cluster: joined && (mutation.cluster?.(joined) ?? joined),
    });
  }

  #recordLease(installation: Installation, process: MonitoredProcess, lease: Lease): Lease {
    installation.driver = process as SoakProcess;
    process.leaseUntil = this.now + lease.expiresAt - this.clock.now();
    return this.#mutation.lease?.(lease) ?? lease;
  }

  /** A front end requests the size; it is a process of its own. */
  async scaleTo(installation: Installation, pool: string, size: number): Promise<void> {
    const { fleet } = this.startProcess(installation);
    // The choice of machines to delete reads the regions.
    const { intent, machines } = await this.advanceUntilSettled(fleet.scaleTo(pool, size, REASON));
    this.log(`${installation.name}: scale ${pool} to ${size}: ${machines.length} affected`);
    if (intent === undefined) return;
    const kind = (await installation.store.intents.get(intent))?.value.kind;
    if (kind === 'delete') for (const id of machines) installation.deletionRequested.add(id);
  }

  async requestDeletion(installation: Installation, machine: MachineId): Promise<void> {
    installation.deletionRequested.add(machine);
    const { fleet } = this.startProcess(installation);
    await this.advanceUntilSettled(fleet.remove([machine], REASON));
  }

  async reconcileOnce(installation: Installation, process: SoakProcess): Promise<PassReport> {
    const lease = await installation.store.leases.acquire({
      name: RECONCILE_LEASE,
      holder: process.holder,
      durationMs: LEASE_MS,
    });
    return process.fleet.reconcileOnce(this.#recordLease(installation, process, lease));
  }

  /** Runs the driver loop until it is stopped or crashes. */
  async runDriver(
    process: SoakProcess,
    { signal, finish }: StopSignals,
  ): Promise<'crashed' | 'stopped'> {
    const onError = (error: Error) => this.log(`error: ${String(error)}`);
    try {
      await process.fleet.runDriver({ signal, finish, events: { onError } });
    } catch (error) {
      if (this.#handlePassError(error) === 'crashed') return 'crashed';
    }
    return 'stopped';
  }

  /** Installations with a process; the others have an outage. */
  get active(): readonly Installation[] {
    return this.installations.filter(({ pausedUntil }) => this.now >= pausedUntil);
  }

  /** One pass of each active installation, at the same time. */
  async runPasses(): Promise<ReadonlyMap<Installation, PassOutcome>> {
    const passes = this.active.map(async (one): Promise<[Installation, PassOutcome]> => {
      const process = (one.process ??= this.startProcess(one));
      const pass = this.reconcileOnce(one, process);
      return [one, await pass.catch((error: unknown) => this.#handlePassError(error))];
    });
    const outcomes = await this.advanceUntilSettled(Promise.all(passes));
    const machines = await this.checkInvariants();
    this.log(machines.map(({ id, phase }) => `${id.slice(0, 4)}=${phase}`).join(' '));
    return new Map(outcomes);
  }

  async checkInvariants(): Promise<readonly Machine[]> {
    await Promise.all(this.#pendingRecords.splice(0));
    for (const { cluster } of this.installations) await cluster?.settle();
    // The requests of a whole day, with the seed ISOs in them, need too much memory.
    for (const { transport } of this.regions.values()) transport.requests.length = 0;
    return checkInvariants(this);
  }

  /** Advances the clock only as far as `work` needs: a stalled process may sleep for longer. */
  async advanceUntilSettled<T>(work: Promise<T>): Promise<T> {
    const { clock } = this;
    const state = { isOver: false };
    const end = () => {
      state.isOver = true;
    };
    work.then(end, end);
    await clock.advance(0);
    while (!state.isOver) {
      await clock.advanceToNext();
      await clock.advance(0);
    }
    return work;
  }

  #handlePassError(error: unknown): 'crashed' | undefined {
    if (isCrash(error)) return 'crashed';
    const isExpected = error instanceof PvescalerError && error.class !== 'Bug';
    this.log(`error: ${String(error)}`);
    if (!isExpected)
      this.reportViolation(`a pass failed with an unexpected error: ${String(error)}`);
    return undefined;
  }

  #observeFaults(region: string): void {
    const { faults } = this.region(region).sim;
    const take = faults.take.bind(faults);
    faults.take = (kinds, target) => {
      const rule = take(kinds, target);
      if (rule !== undefined && this.faultNames.has(rule))
        this.#pendingRecords.push(this.#recordFault(region, rule, target));
      return rule;
    };
  }

  async #recordFault(region: string, rule: FaultRule, target: FaultTarget): Promise<void> {
    this.faultCount += 1;
    const row = this.faultNames.get(rule) ?? rule.kind;
    this.needsCleanup ||= rule.kind === 'task-killed' || rule.kind.startsWith('host-down');
    const machines = (await this.machines()).filter(
      ({ placement }) => placement?.region === region,
    );
    const column = findColumn(target, machines);
    this.log(
      `fault ${row} in phase ${column ?? 'none'}: ${target.endpoint ?? target.taskType ?? ''}`,
    );
    if (column !== undefined) this.countFault(row, column);
  }
}

/** The engine wraps unexpected errors. */
function isCrash(error: unknown): boolean {
  if (error instanceof SimulatedCrash) return true;
  return error instanceof PvescalerError && error.cause instanceof SimulatedCrash;
}
