// SPDX-License-Identifier: Apache-2.0
// The dashboard of the daemon: reads the state for pages, samples it for plots, and passes actions to the fleet.
import type { Config } from '../config/index.ts';
import type { DashboardActions, DashboardState } from '../http/index.ts';
import { formatCount } from '../model/format-text.ts';
import type { Machine } from '../model/machine.ts';
import type { Clock } from '../ports/clock.ts';
import { InvalidRequest, NotFound, Unreachable } from '../ports/errors.ts';
import type { OpenFleet } from '../setup/index.ts';
import { dashboardState, pricesOf } from './dashboard-state.ts';
import type { RunningFrontEnd } from './front-end.ts';
import { History } from './history.ts';

export interface DashboardOptions {
  /** The one in use. */
  readonly config: () => Config;
  readonly version: string;
  readonly clock: Clock;
  /** Undefined until the fleet is open. */
  readonly open: () => OpenFleet | undefined;
  readonly frontEnd: () => RunningFrontEnd | undefined;
  readonly problems: () => readonly string[];
}

const SAMPLE_MS = 5_000;
const JOURNAL_ENTRIES = 100;
const REQUESTED_BY = 'dashboard';
const NOTHING = { cpuMilli: 0, memoryBytes: 0 };
/** The Cluster Autoscaler observes pods, this process does not. */
const NOT_OBSERVED = { pending: 0, requested: NOTHING, allocatable: NOTHING };

export class Dashboard {
  readonly #options: DashboardOptions;
  readonly #history = new History();

  constructor(options: DashboardOptions) {
    this.#options = options;
  }

  async readState(): Promise<DashboardState> {
    const { config, version, clock, frontEnd, problems } = this.#options;
    const { fleet, store } = this.#requireOpen();
    const [status, journal] = await Promise.all([
      fleet.status(),
      store.journal.read({ limit: JOURNAL_ENTRIES }),
    ]);
    return dashboardState({
      config: config(),
      version,
      now: clock.now(),
      isDriver: fleet.driverLease() !== undefined,
      problems: problems(),
      status,
      views: fleet.regionViews(),
      scaling: frontEnd()?.scaling?.(),
      journal,
      history: this.#history,
    });
  }

  /** Until the signal. */
  async sample(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      await this.#sampleOnce().catch(() => undefined);
      await clock.sleep(SAMPLE_MS, { signal }).catch(() => undefined);
    }
  }

  async #sampleOnce(): Promise<void> {
    const { config, clock, open, frontEnd } = this.#options;
    const fleet = open()?.fleet;
    if (fleet === undefined) return;
    const { machines } = await fleet.status();
    const at = clock.now();
    this.#history.addCost(pricesOf(config(), machines), at);
    const ready = machines.filter(({ phase }) => phase === 'ready').length;
    const { pending, nodes, requested, allocatable } = frontEnd()?.scaling?.() ?? {
      ...NOT_OBSERVED,
      nodes: ready,
    };
    this.#history.add({
      at,
      pending,
      nodes,
      requestedCpu: requested.cpuMilli / 1_000,
      allocatableCpu: allocatable.cpuMilli / 1_000,
      requestedMemory: requested.memoryBytes,
      allocatableMemory: allocatable.memoryBytes,
    });
  }

  get actions(): DashboardActions {
    return {
      scalePool: async (pool, to) => {
        const { fleet } = this.#requirePool(pool);
        const reason = `pool ${pool} to ${formatCount(to, 'machine')}`;
        const { intent } = await fleet.scaleTo(pool, to, { by: REQUESTED_BY, reason, drain: {} });
        return intent === undefined ? `pool ${pool} has that size` : `requested: ${reason}`;
      },
      pausePool: async (pool, minutes) => {
        const { fleet } = this.#requirePool(pool);
        if (this.#options.config().mode === 'externalgrpc') {
          throw new InvalidRequest(
            'REQUEST_INVALID',
            `pool ${pool} is not paused: the Cluster Autoscaler decides about its machines`,
            { hint: 'Set limits.max of the pool to its size for as long as it must not grow.' },
          );
        }
        const since = this.#options.clock.now();
        const until = since + minutes * 60_000;
        await fleet.pausePool(pool, { since, until, reason: 'requested in the dashboard' });
        return `pool ${pool} is paused for ${formatCount(minutes, 'minute')}`;
      },
      resumePool: async (pool) => {
        const reason = `resume pool ${pool}`;
        await this.#requirePool(pool).fleet.resume(pool, { by: REQUESTED_BY, reason });
        return `requested: ${reason}`;
      },
      drainMachine: async (text) => {
        const { fleet, machine } = await this.#requireMachine(text);
        const reason = 'requested in the dashboard';
        await fleet.drain({ by: REQUESTED_BY, reason, machines: [{ id: machine.id }] });
        return `machine ${nameOf(machine)} will be drained and deleted`;
      },
      deleteMachine: async (text) => {
        const { fleet, machine } = await this.#requireMachine(text);
        const reason = 'requested in the dashboard';
        await fleet.remove([machine.id], { by: REQUESTED_BY, reason });
        return `machine ${nameOf(machine)} will be deleted`;
      },
    };
  }

  #requireOpen(): OpenFleet {
    const open = this.#options.open();
    if (open === undefined) {
      throw new Unreachable('VIEW_STALE', 'the fleet is not open yet', {
        hint: '/readyz of http.health says what the process waits for.',
      });
    }
    return open;
  }

  #requirePool(pool: string): OpenFleet {
    if (!this.#options.config().pools.some(({ name }) => name === pool)) {
      throw new NotFound('POOL_NOT_FOUND', `the config has no pool ${pool}`);
    }
    return this.#requireOpen();
  }

  async #requireMachine(id: string) {
    const { fleet } = this.#requireOpen();
    const { machines } = await fleet.status();
    const machine = machines.find((one) => one.id === id);
    if (machine === undefined) throw new NotFound('MACHINE_NOT_FOUND', `there is no machine ${id}`);
    return { fleet, machine };
  }
}

function nameOf({ placement, id }: Machine): string {
  return placement?.name ?? id;
}
