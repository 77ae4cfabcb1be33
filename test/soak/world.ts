// SPDX-License-Identifier: Apache-2.0
// One seed's world: a simulated cluster, the durable records, the processes that come and go, and what the soak
// itself knows about all of them.
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
import { columnOf, type Target } from './faults.ts';
import { check, likeness } from './invariants.ts';
import { Known } from './known.ts';
import { Monitor, type Watched } from './monitor.ts';
import type { Sabotage } from './sabotage.ts';
import { soakCluster, soakSettings } from './setting.ts';
import { watchedStore } from './watched-store.ts';

const LEASE_MS = 120_000;
const WHY = { by: 'soak', reason: 'the plan wants it' };

export interface Process extends Watched {
  readonly holder: string;
  readonly fleet: Fleet;
}

/** At once, or after the present round. */
export interface Ends {
  readonly signal: AbortSignal;
  readonly finish: AbortSignal;
}

export class World extends Known {
  readonly settings: FleetSettings;
  readonly random: SeededRandom;
  readonly seed: number;
  struck = 0;
  meddled = 0;
  /** Whether a person has something to tidy up. */
  hasWreckage = false;
  readonly rows = new Map<FaultRule, string>();
  readonly #sabotage: Sabotage;
  readonly #pending: Promise<void>[] = [];
  #processes = 0;

  constructor(seed: number, sabotage: Sabotage = {}) {
    super(simulatedRegion({ cluster: soakCluster() }, { region: REGION }, 'changes'));
    this.seed = seed;
    this.#sabotage = sabotage;
    this.random = new SeededRandom(seed);
    this.settings = soakSettings(seed);
    this.#watchFaults();
    for (const { id } of this.region.sim.inspect().vms) this.protect(id);
  }

  protect(vmId: number): void {
    this.strangers.set(vmId, likeness(this.region.sim.inspect(), vmId));
  }

  aProcess(wish: CrashPoint = { kind: 'never' }): Process {
    this.#processes += 1;
    const watched: Watched = { token: -1, stall: undefined };
    const guarded = new Monitor(this, watched).wrap(this.region.hypervisor);
    const mortal = new CrashingProcess(this.store, guarded, wish);
    const { store = (one) => one, hypervisor = (one) => one } = this.#sabotage;
    const holder = `process-${this.#processes}`;
    const fleet = createFleet({
      clock: this.region.clock,
      store: store(watchedStore(mortal.store, (lease) => this.#led(watched, lease))),
      hypervisors: new Map([[REGION, hypervisor(mortal.hypervisor)]]),
      random: new SeededRandom(this.seed * 1_000 + this.#processes),
      settings: { ...this.settings, holder },
    });
    return Object.assign(watched, { holder, fleet });
  }

  #led(process: Watched, lease: Lease): Lease {
    process.token = lease.token;
    this.token = lease.token;
    return this.#sabotage.lease?.(lease) ?? lease;
  }

  /** Asked by a face, which is a process of its own. */
  async scaleTo(size: number): Promise<void> {
    const { fleet } = this.aProcess();
    const { intent, machines } = await fleet.scaleTo('workers', size, WHY);
    this.log(`scale to ${size}: ${machines.length}`);
    if (intent === undefined) return;
    const kind = (await this.store.intents.get(intent))?.value.kind;
    if (kind === 'delete') for (const id of machines) this.dismissed.add(id);
  }

  async round(process: Process): Promise<PassReport> {
    const lease = await this.store.leases.acquire({
      name: RECONCILE_LEASE,
      holder: process.holder,
      durationMs: LEASE_MS,
    });
    return process.fleet.reconcileOnce(this.#led(process, lease));
  }

  /** Drives by itself, until it is stopped or dead. */
  async drive(process: Process, { signal, finish }: Ends): Promise<'dead' | 'stopped'> {
    const onError = (error: Error) => this.log(`trouble: ${String(error)}`);
    try {
      await process.fleet.runDriver({ signal, finish, events: { onError } });
    } catch (error) {
      if (this.#trouble(error) === 'dead') return 'dead';
    }
    return 'stopped';
  }

  /** Undefined when the round did not come to its end. */
  async step(process: Process): Promise<PassReport | 'dead' | undefined> {
    const outcome = await this.settled(
      this.round(process).catch((error: unknown) => this.#trouble(error)),
    );
    const machines = await this.judge();
    if (outcome !== undefined && outcome !== 'dead') {
      this.log(machines.map(({ id, phase }) => `${id.slice(0, 4)}=${phase}`).join(' '));
    }
    return outcome;
  }

  async judge(): Promise<readonly Machine[]> {
    await Promise.all(this.#pending.splice(0));
    // A day's requests, seeds included, are too much to remember.
    this.region.transport.requests.length = 0;
    return check(this);
  }

  /** Lets no more time pass than the work needs: somebody else may be asleep for longer. */
  async settled<T>(work: Promise<T>): Promise<T> {
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

  #trouble(error: unknown): 'dead' | undefined {
    if (error instanceof SimulatedCrash) return 'dead';
    const isExpected = error instanceof PvescalerError && error.class !== 'Bug';
    this.log(`trouble: ${String(error)}`);
    if (!isExpected) this.violated(`a round ended with ${String(error)}`);
    return undefined;
  }

  #watchFaults(): void {
    const { faults } = this.region.sim;
    const take = faults.take.bind(faults);
    faults.take = (kinds, target) => {
      const rule = take(kinds, target);
      if (rule !== undefined) this.#pending.push(this.#struckBy(rule, target));
      return rule;
    };
  }

  async #struckBy(rule: FaultRule, target: Target): Promise<void> {
    this.struck += 1;
    const row = this.rows.get(rule) ?? rule.kind;
    this.hasWreckage ||= rule.kind === 'task-killed' || rule.kind.startsWith('host-down');
    const column = columnOf(target, await this.machines());
    this.log(`fault ${row} in ${column ?? 'passing'}: ${target.endpoint ?? target.taskType ?? ''}`);
    if (column !== undefined) this.cover(row, column);
  }
}
