// SPDX-License-Identifier: Apache-2.0
// Seeded disorder on fakes: sizes change while processes die, answers are lost, tasks fail, hosts go away and come
// back, the database is lost. At no time two VMs for one machine or one address twice; at the end exactly what is
// wanted. A seed that fails replays.
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
  leftovers,
  machinesIn,
  onePass,
  type TestFleet,
  untilAtRest,
  WHY,
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

class Disorder {
  readonly #random: SeededRandom;
  readonly #source: SourceSettings;
  readonly #bench: TestFleet;
  store: MemoryStore;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.#source = this.#pick(SOURCES);
    this.#bench = aTestFleet(settingsOf(this.#source));
    this.store = this.#bench.store;
  }

  async run(): Promise<void> {
    for (let life = 0; life < 12; life += 1) {
      await this.#live();
      if (this.#random.integer(8) === 0) this.store = new MemoryStore({ clock: this.#bench.clock });
    }
    await this.#settle();
  }

  /** One process: it does what it is asked for, in trouble, until it dies or has had enough. */
  async #live(): Promise<void> {
    const { hypervisor, clock } = this.#bench;
    const mortal = new CrashingProcess(this.store, hypervisor, this.#wish());
    const { store } = mortal;
    const fleet = aFleet({
      clock,
      store,
      hypervisor: mortal.hypervisor,
      settings: settingsOf(this.#source),
      seed: this.#random.integer(1_000_000),
    });
    try {
      // As every command does: nothing is asked for before everything has been seen.
      const { stale, undecided } = await onePass(fleet, { store, clock });
      if (Object.keys(stale).length + undecided.length === 0) {
        await fleet.scaleTo('workers', this.#random.integer(5), WHY);
      }
      for (let round = this.#random.integer(25); round > 0; round -= 1) {
        this.#disturb();
        await onePass(fleet, { store, clock });
        this.#expectSane();
      }
    } catch (error) {
      if (!(error instanceof SimulatedCrash)) throw error;
    }
  }

  async #settle(): Promise<void> {
    const { hypervisor, clock } = this.#bench;
    for (const host of HOSTS) hypervisor.setOnline(host, true);
    const at = { store: this.store, clock };
    const parts = { ...this.#bench, store: this.store, settings: settingsOf(this.#source) };
    const fleet = aFleet({ ...parts, seed: 99 });
    await untilAtRest(fleet, at);
    // Failures that are still armed cost a machine each; ids and addresses rest.
    for (let tries = 0; tries < 12; tries += 1) {
      await clock.advance(40 * 60_000);
      await fleet.scaleTo('workers', 2, WHY);
      await untilAtRest(fleet, at);
    }
    const ready = (await machinesIn(this.store)).filter(({ phase }) => phase === 'ready');
    expect(leftovers(hypervisor).machines.toSorted()).toEqual(ready.map(({ id }) => id).sort());
    expect(ready).toHaveLength(2);
    expect(leftovers(hypervisor).isos).toEqual([]);
    expect(await addressesInUse(this.store)).toHaveLength(2);
  }

  #disturb(): void {
    const { hypervisor } = this.#bench;
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

  #expectSane(): void {
    const { machines } = leftovers(this.#bench.hypervisor);
    const marked = machines.filter((machine) => machine.includes('-'));
    expect(new Set(marked).size).toBe(marked.length);
  }

  #wish(): CrashPoint {
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

it.each(SEEDS)('ends in order, whatever happened before (seed %i)', async (seed) => {
  await new Disorder(seed).run();
});
