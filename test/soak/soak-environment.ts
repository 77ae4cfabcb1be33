// SPDX-License-Identifier: Apache-2.0
// The environment of one seed: simulated regions, the installations with their records and clusters, and the pvescaler
// processes that start, crash and stop.
import { createFleet, DriverRegistry, type Fleet, type PassReport } from '../../src/fleet/index.ts';
import {
  type CrashableStore,
  CrashingProcess,
  type CrashPoint,
} from '../../src/fleet/testing/crashing-process.ts';
import { type Lease, RECONCILE_LEASE } from '../../src/model/lease.ts';
import type { Machine, MachineId } from '../../src/model/machine.ts';
import { LostLeadership, PvescalerError } from '../../src/ports/errors.ts';
import { SimulatedCrash } from '../../src/ports/fakes/memory-store.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { FaultRule } from '../../src/sim/proxmox/index.ts';
import { simulatedRegion } from '../proxmox/simulated-region.ts';
import { CallMonitor, type MonitoredProcess } from './call-monitor.ts';
import { type FaultTarget, findColumn } from './faults.ts';
import { Installation, type SoakProcess } from './installation.ts';
import { checkCopy, checkInvariants, snapshotVm } from './invariants.ts';
import { SoakCluster } from './kubernetes.ts';
import { KubernetesRecords, type ProcessStore } from './kubernetes-records.ts';
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

export const LEASE_MS = 120_000;
const LEASE = { name: RECONCILE_LEASE, durationMs: LEASE_MS };
const REASON = { by: 'soak', reason: 'scaling event of the soak plan' };

/** `signal` stops immediately, `finish` after the current pass. */
export interface StopSignals {
  readonly signal: AbortSignal;
  readonly finish: AbortSignal;
}

/** What the soak knows of a process before it runs. */
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
    const objects = this.features.recordsInKubernetes
      ? new KubernetesRecords(clock, seed)
      : undefined;
    this.installations.push(new Installation(description, { clock, cluster, objects }));
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
    const parts = this.#createFleet(installation, { process: monitored, holder, crashPoint });
    const process: SoakProcess = Object.assign(monitored, { holder, ...parts });
    installation.processes.add(process);
    return process;
  }

  /** Stops all processes of the installation, stalled ones too. */
  killProcesses(installation: Installation): void {
    const { processes } = installation;
    installation.standby = undefined;
    for (const process of processes) {
      process.isKilled = true;
      if (process.records !== undefined) process.kill();
    }
    processes.clear();
  }

  /** The process ends at once; what it has deferred is lost. */
  endProcess({ processes }: Installation, process: SoakProcess | undefined): void {
    // A process on a database of its own costs nothing, and it may still be in a call.
    if (process?.records === undefined) return;
    process.kill();
    processes.delete(process);
  }

  #createFleet(
    installation: Installation,
    { process, holder, crashPoint }: ProcessParts,
  ): Pick<SoakProcess, 'fleet' | 'startTerm' | 'records' | 'opened' | 'registry' | 'kill'> {
    const { settings, cluster, id, objects } = installation;
    const mutation = this.#mutation;
    const monitor = new CallMonitor({ state: this, installation, process });
    const registry = objects && new DriverRegistry(this.clock);
    let records: ProcessStore | undefined;
    const crashing = new CrashingProcess<CrashableStore>(
      objects === undefined || registry === undefined
        ? installation.store
        : {
            reopen: ({ onWrite }) => {
              records = objects.open({
                local: installation.store,
                fence: registry,
                seed: this.seed * 1_000 + this.#processCount,
                observer: { ...monitor.connectionObserver, onWrite },
                onError: (error) => this.log(`${holder}: background error: ${String(error)}`),
              });
              return records;
            },
          },
      this.region(LAB).hypervisor,
      crashPoint,
    );
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
    let term: number | undefined;
    const onLease = (lease: Lease) => {
      // What was deferred in an earlier term is lost, as after a crash.
      if (objects !== undefined && lease.token !== term) monitor.forgetTasks();
      term = lease.token;
      return this.#recordLease(installation, process, lease);
    };
    const observed = observeLeases(crashing.store, onLease);
    const random = new SeededRandom(this.seed * 1_000 + this.#processCount);
    const startTerm = () => {
      monitor.forgetTasks();
      return createFleet({
        clock: this.clock,
        store: mutation.store?.(observed) ?? observed,
        hypervisors: new Map(hypervisors),
        random,
        settings: { ...(mutation.settings?.(settings) ?? settings), holder },
        cluster: joined && (mutation.cluster?.(joined) ?? joined),
        driverRegistry: registry,
      });
    };
    const opened = records?.open() ?? Promise.resolve();
    opened.catch(() => undefined);
    const kill = () => {
      crashing.store.crashAfterWrites(0);
      void crashing.store.close().catch(() => undefined);
    };
    return { fleet: startTerm(), startTerm, records, opened, registry, kill };
  }

  #recordLease(installation: Installation, process: MonitoredProcess, lease: Lease): Lease {
    installation.driver = process as SoakProcess;
    process.leaseUntil = this.now + lease.expiresAt - this.clock.now();
    return this.#mutation.lease?.(lease) ?? lease;
  }

  /** A front end is a process of its own. Undefined when it failed because its records could not be reached. */
  async ask<T>(
    installation: Installation,
    request: (fleet: Fleet) => Promise<T>,
  ): Promise<T | undefined> {
    const process = this.startProcess(installation);
    try {
      return await this.advanceUntilSettled(process.opened.then(() => request(process.fleet)));
    } catch (error) {
      const isExpected = error instanceof PvescalerError && error.class !== 'Bug';
      if (process.records === undefined || !isExpected) throw error;
      this.log(`${installation.name}: request failed: ${String(error)}`);
      await installation.recordDeletionRequests();
      return undefined;
    } finally {
      this.endProcess(installation, process);
    }
  }

  async scaleTo(installation: Installation, pool: string, size: number): Promise<void> {
    // The choice of machines to delete reads the regions.
    const accepted = await this.ask(installation, (fleet) => fleet.scaleTo(pool, size, REASON));
    if (accepted === undefined) return;
    const { intent, machines } = accepted;
    this.log(`${installation.name}: scale ${pool} to ${size}: ${machines.length} affected`);
    if (intent === undefined) return;
    const { kind } = (await installation.list('intents')).find(({ id }) => id === intent) ?? {};
    if (kind === 'delete') for (const id of machines) installation.deletionRequested.add(id);
  }

  /** False when it could not be requested. */
  async requestDeletion(installation: Installation, machine: MachineId): Promise<boolean> {
    installation.deletionRequested.add(machine);
    const accepted = await this.ask(installation, (fleet) => fleet.remove([machine], REASON));
    return accepted !== undefined;
  }

  async reconcileOnce(installation: Installation, process: SoakProcess): Promise<PassReport> {
    const { records, registry } = process;
    if (records === undefined || registry === undefined) {
      const { leases } = installation.store;
      const lease = await leases.acquire({ ...LEASE, holder: process.holder });
      return process.fleet.reconcileOnce(this.#recordLease(installation, process, lease));
    }
    const lease = await this.#lead(process, records);
    const isNewTerm = lease.token !== process.lease?.token;
    process.lease = lease;
    const recorded = this.#recordLease(installation, process, lease);
    registry.begin({
      mayAct: () =>
        this.now < process.leaseUntil && this.clock.now() < (process.lease?.expiresAt ?? 0),
    });
    if (isNewTerm) {
      process.fleet = process.startTerm();
      void this.#keepLease(installation, process, records);
      await this.#synchronize(installation, records);
    }
    return process.fleet.reconcileOnce(recorded);
  }

  /** A term lasts as long as the lease can be renewed. */
  async #lead({ lease, holder }: SoakProcess, { leases }: ProcessStore): Promise<Lease> {
    const renewed = lease && leases.renew(lease, LEASE.durationMs);
    try {
      if (renewed !== undefined) return await renewed;
    } catch (error) {
      if (!(error instanceof LostLeadership)) throw error;
    }
    return leases.acquire({ ...LEASE, holder });
  }

  /** While the process waits for its next pass. */
  // oxlint-disable-next-line max-params -- whose process, and its leases
  async #keepLease(
    installation: Installation,
    process: SoakProcess,
    { leases }: ProcessStore,
  ): Promise<void> {
    for (;;) {
      await this.clock.sleep(LEASE_MS / 3);
      if (installation.process !== process || process.lease === undefined) return;
      try {
        process.lease = await leases.renew(process.lease, LEASE_MS);
      } catch {
        return;
      }
      this.#recordLease(installation, process, process.lease);
    }
  }

  async releaseLease({ records, lease }: SoakProcess): Promise<void> {
    if (records === undefined || lease === undefined) return;
    await this.advanceUntilSettled(records.leases.release(lease).catch(() => undefined));
  }

  async #synchronize(installation: Installation, records: ProcessStore): Promise<void> {
    await (this.#mutation.store?.(records) ?? records).synchronize();
    await checkCopy(this, installation, records);
  }

  /** Runs the driver loop until it is stopped or crashes. */
  // oxlint-disable-next-line max-params -- whose process runs, and until when
  async runDriver(
    installation: Installation,
    process: SoakProcess,
    { signal, finish }: StopSignals,
  ): Promise<'crashed' | 'stopped'> {
    const onError = (error: Error) => this.log(`error: ${String(error)}`);
    try {
      await this.#opened(installation, process);
      await process.fleet.runDriver({ signal, finish, events: { onError } });
    } catch (error) {
      if (this.#handlePassError(error) === 'crashed') return 'crashed';
    }
    return 'stopped';
  }

  /** A process that cannot open its records ends, and another is started. */
  async #opened(installation: Installation, process: SoakProcess): Promise<void> {
    try {
      await process.opened;
    } catch (error) {
      this.endProcess(installation, process);
      if (installation.process === process) installation.process = undefined;
      throw error;
    }
  }

  /** Installations with a process; the others have an outage. */
  get active(): readonly Installation[] {
    return this.installations.filter(({ pausedUntil }) => this.now >= pausedUntil);
  }

  /** One pass of each active installation, at the same time. */
  async runPasses(): Promise<ReadonlyMap<Installation, PassOutcome>> {
    const passes = this.active.map(async (one): Promise<[Installation, PassOutcome]> => {
      const process = (one.process ??= this.startProcess(one));
      const pass = this.#opened(one, process).then(() => this.reconcileOnce(one, process));
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
