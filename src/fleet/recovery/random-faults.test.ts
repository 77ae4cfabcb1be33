// SPDX-License-Identifier: Apache-2.0
// Seeded random faults on fakes: pool sizes change while processes crash, responses are lost, tasks fail, hosts go
// offline and return, and the database is lost. No machine ever has two VMs, and at the end exactly the requested
// machines exist, each with its own address. A failing seed can be replayed.
import { expect, it } from 'vitest';
import { TaskFailed } from '../../ports/errors.ts';
import { MemoryStore, SimulatedCrash } from '../../ports/fakes/memory-store.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { SourceSettings } from '../context/settings.ts';
import { CrashingProcess, type CrashPoint } from '../testing/crashing-process.ts';
import {
  aPool,
  IMAGE_SOURCE,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import {
  addressesInUse,
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  onePass,
  REASON,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const SOURCES: readonly SourceSettings[] = [
  IMAGE_SOURCE,
  templateSource('full'),
  templateSource('linked'),
];
const METHODS = [
  'createVm',
  'cloneVm',
  'applySpec',
  'attachSeed',
  'setDescription',
  'startVm',
  'destroyVm',
  'uploadIso',
  'view',
] as const;
const TASKS = ['create', 'clone', 'start', 'destroy', 'upload', 'resize', 'shutdown'] as const;
const HOSTS = ['pve1', 'pve2', 'pve3'];

function settingsOf(source: SourceSettings) {
  return someSettings(
    [aPool({ source, network: STATIC_NETWORK, limits: { ...aPool().limits, min: 0, max: 5 } })],
    {
      backoff: { initialMs: 2_000, maxMs: 10_000 },
    },
  );
}

class RandomFaults {
  readonly #random: SeededRandom;
  readonly #source: SourceSettings;
  readonly #testFleet: TestFleet;
  store: MemoryStore;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.#source = this.#pick(SOURCES);
    this.#testFleet = aTestFleet(settingsOf(this.#source));
    this.store = this.#testFleet.store;
  }

  async run(): Promise<void> {
    for (let start = 0; start < 12; start += 1) {
      await this.#runProcess();
      if (this.#random.integer(8) === 0)
        this.store = new MemoryStore({ clock: this.#testFleet.clock });
    }
    await this.#settle();
  }

  /** One process, from its start until it crashes or has run its passes. */
  async #runProcess(): Promise<void> {
    const { hypervisor, clock } = this.#testFleet;
    const process = new CrashingProcess(this.store, hypervisor, this.#randomCrashPoint());
    const { store } = process;
    const fleet = aFleet({
      clock,
      store,
      hypervisor: process.hypervisor,
      settings: settingsOf(this.#source),
      seed: this.#random.integer(1_000_000),
    });
    try {
      // Like every command: it requests nothing before one pass has read everything.
      const { stale, undecided } = await onePass(fleet, { store, clock });
      if (Object.keys(stale).length + undecided.length === 0) {
        await fleet.scaleTo('workers', this.#random.integer(5), REASON);
      }
      for (let pass = this.#random.integer(25); pass > 0; pass -= 1) {
        this.#injectFault();
        await onePass(fleet, { store, clock });
        this.#expectOneVmPerMachine();
      }
    } catch (error) {
      if (!(error instanceof SimulatedCrash)) throw error;
    }
  }

  async #settle(): Promise<void> {
    const { hypervisor, clock } = this.#testFleet;
    for (const host of HOSTS) hypervisor.setOnline(host, true);
    const passParts = { store: this.store, clock };
    const parts = { ...this.#testFleet, store: this.store, settings: settingsOf(this.#source) };
    const fleet = aFleet({ ...parts, seed: 99 });
    await untilAtRest(fleet, passParts);
    // Each injected failure that is still pending fails one machine; released ids and addresses cool down.
    for (let attempt = 0; attempt < 12; attempt += 1) {
      await clock.advance(40 * 60_000);
      await fleet.scaleTo('workers', 2, REASON);
      await untilAtRest(fleet, passParts);
    }
    const ready = (await machinesIn(this.store)).filter(({ phase }) => phase === 'ready');
    expect(existingResources(hypervisor).machines.toSorted()).toEqual(
      ready.map(({ id }) => id).sort(),
    );
    expect(ready).toHaveLength(2);
    expect(existingResources(hypervisor).isos).toEqual([]);
    expect(await addressesInUse(this.store)).toHaveLength(2);
  }

  #injectFault(): void {
    const { hypervisor } = this.#testFleet;
    switch (this.#random.integer(12)) {
      case 0:
        return hypervisor.dropResponse(this.#pick(METHODS));
      case 1:
        return hypervisor.failNextTask(
          this.#pick(TASKS),
          new TaskFailed('TASK_FAILED', 'a task failed'),
        );
      case 2:
        return hypervisor.setOnline(this.#pick(HOSTS), false);
      case 3:
      case 4:
        return HOSTS.forEach((host) => hypervisor.setOnline(host, true));
      default:
    }
  }

  #expectOneVmPerMachine(): void {
    const { machines } = existingResources(this.#testFleet.hypervisor);
    const marked = machines.filter((machine) => machine.includes('-'));
    expect(new Set(marked).size).toBe(marked.length);
  }

  #randomCrashPoint(): CrashPoint {
    const number = 1 + this.#random.integer(30);
    return this.#pick<CrashPoint>([
      { kind: 'never' },
      { kind: 'write', number },
      { kind: 'unseen', number: Math.ceil(number / 4) },
      { kind: 'seen', number: Math.ceil(number / 4) },
    ]);
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#random.integer(from.length)] as T;
  }
}

const SEEDS = Array.from({ length: 40 }, (_, index) => index + 1);

it.each(SEEDS)(
  'ends with exactly the requested machines after random faults (seed %i)',
  async (seed) => {
    await new RandomFaults(seed).run();
  },
);
