// SPDX-License-Identifier: Apache-2.0
// The environment of one seed: a simulated region, the durable records and the pvescaler processes that start, crash
// and stop.
import {
  createFleet,
  type Fleet,
  type FleetSettings,
  type PassReport,
} from '../../src/fleet/index.ts';
import { CrashingProcess, type CrashPoint } from '../../src/fleet/testing/crashing-process.ts';
import { REGION } from '../../src/fleet/testing/settings.ts';
import { type Lease, RECONCILE_LEASE } from '../../src/model/lease.ts';
import type { Machine } from '../../src/model/machine.ts';
import { PvescalerError } from '../../src/ports/errors.ts';
import { SimulatedCrash } from '../../src/ports/fakes/memory-store.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { FaultRule } from '../../src/sim/proxmox/index.ts';
import { simulatedRegion } from '../proxmox/simulated-region.ts';
import { CallMonitor, type MonitoredProcess } from './call-monitor.ts';
import { type FaultTarget, findColumn } from './faults.ts';
import { checkInvariants, snapshotVm } from './invariants.ts';
import type { Mutation } from './mutations.ts';
import { observeLeases } from './observe-leases.ts';
import { soakCluster, soakSettings } from './soak-settings.ts';
import { SoakState } from './soak-state.ts';

const LEASE_MS = 120_000;
const REASON = { by: 'soak', reason: 'scaling event of the soak plan' };

export interface SoakProcess extends MonitoredProcess {
  readonly holder: string;
  readonly fleet: Fleet;
}

/** `signal` stops immediately, `finish` after the current pass. */
export interface StopSignals {
  readonly signal: AbortSignal;
  readonly finish: AbortSignal;
}

export class SoakEnvironment extends SoakState {
  readonly settings: FleetSettings;
  readonly random: SeededRandom;
  readonly seed: number;
  faultCount = 0;
  externalChangeCount = 0;
  /** Whether a fault left something that only an administrator can delete. */
  needsCleanup = false;
  readonly faultNames = new Map<FaultRule, string>();
  readonly #mutation: Mutation;
  readonly #pendingRecords: Promise<void>[] = [];
  #processCount = 0;

  constructor(seed: number, mutation: Mutation = {}) {
    super(simulatedRegion({ cluster: soakCluster() }, { region: REGION }, 'changes'));
    this.seed = seed;
    this.#mutation = mutation;
    this.random = new SeededRandom(seed);
    this.settings = soakSettings(seed);
    this.#observeFaults();
    for (const { id } of this.region.sim.inspect().vms) this.protectVm(id);
  }

  protectVm(vmId: number): void {
    this.unmanagedVms.set(vmId, snapshotVm(this.region.sim.inspect(), vmId));
  }

  startProcess(crashPoint: CrashPoint = { kind: 'never' }): SoakProcess {
    this.#processCount += 1;
    const monitoredProcess: MonitoredProcess = { token: -1, stall: undefined };
    const monitored = new CallMonitor(this, monitoredProcess).wrap(this.region.hypervisor);
    const crashing = new CrashingProcess(this.store, monitored, crashPoint);
    const { store = (one) => one, hypervisor = (one) => one } = this.#mutation;
    const holder = `process-${this.#processCount}`;
    const fleet = createFleet({
      clock: this.region.clock,
      store: store(
        observeLeases(crashing.store, (lease) => this.#recordLease(monitoredProcess, lease)),
      ),
      hypervisors: new Map([[REGION, hypervisor(crashing.hypervisor)]]),
      random: new SeededRandom(this.seed * 1_000 + this.#processCount),
      settings: { ...this.settings, holder },
    });
    return Object.assign(monitoredProcess, { holder, fleet });
  }

  #recordLease(process: MonitoredProcess, lease: Lease): Lease {
    process.token = lease.token;
    this.leaseToken = lease.token;
    return this.#mutation.lease?.(lease) ?? lease;
  }

  /** A front end requests the size; it is a process of its own. */
  async scaleTo(size: number): Promise<void> {
    const { fleet } = this.startProcess();
    const { intent, machines } = await fleet.scaleTo('workers', size, REASON);
    this.log(`scale to ${size}: ${machines.length} machines affected`);
    if (intent === undefined) return;
    const kind = (await this.store.intents.get(intent))?.value.kind;
    if (kind === 'delete') for (const id of machines) this.deletionRequested.add(id);
  }

  async reconcileOnce(process: SoakProcess): Promise<PassReport> {
    const lease = await this.store.leases.acquire({
      name: RECONCILE_LEASE,
      holder: process.holder,
      durationMs: LEASE_MS,
    });
    return process.fleet.reconcileOnce(this.#recordLease(process, lease));
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

  /** Undefined when the pass failed. */
  async runPass(process: SoakProcess): Promise<PassReport | 'crashed' | undefined> {
    const outcome = await this.advanceUntilSettled(
      this.reconcileOnce(process).catch((error: unknown) => this.#handlePassError(error)),
    );
    const machines = await this.checkInvariants();
    if (outcome !== undefined && outcome !== 'crashed') {
      this.log(machines.map(({ id, phase }) => `${id.slice(0, 4)}=${phase}`).join(' '));
    }
    return outcome;
  }

  async checkInvariants(): Promise<readonly Machine[]> {
    await Promise.all(this.#pendingRecords.splice(0));
    // The requests of a whole day, with the seed ISOs in them, need too much memory.
    this.region.transport.requests.length = 0;
    return checkInvariants(this);
  }

  /** Advances the clock only as far as `work` needs: a stalled process may sleep for longer. */
  async advanceUntilSettled<T>(work: Promise<T>): Promise<T> {
    const { clock } = this.region;
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
    if (error instanceof SimulatedCrash) return 'crashed';
    const isExpected = error instanceof PvescalerError && error.class !== 'Bug';
    this.log(`error: ${String(error)}`);
    if (!isExpected)
      this.reportViolation(`a pass failed with an unexpected error: ${String(error)}`);
    return undefined;
  }

  #observeFaults(): void {
    const { faults } = this.region.sim;
    const take = faults.take.bind(faults);
    faults.take = (kinds, target) => {
      const rule = take(kinds, target);
      if (rule !== undefined) this.#pendingRecords.push(this.#recordFault(rule, target));
      return rule;
    };
  }

  async #recordFault(rule: FaultRule, target: FaultTarget): Promise<void> {
    this.faultCount += 1;
    const row = this.faultNames.get(rule) ?? rule.kind;
    this.needsCleanup ||= rule.kind === 'task-killed' || rule.kind.startsWith('host-down');
    const column = findColumn(target, await this.machines());
    this.log(
      `fault ${row} in phase ${column ?? 'none'}: ${target.endpoint ?? target.taskType ?? ''}`,
    );
    if (column !== undefined) this.countFault(row, column);
  }
}
