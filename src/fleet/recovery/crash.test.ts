// SPDX-License-Identifier: Apache-2.0
// The crash matrix on fakes. The instants are taken from a run without a crash: after each durable write, and at
// each call to Proxmox that leaves something behind, once with the answer lost and once with it seen and not
// written down. The next process must make exactly what was wanted, with the database and without it.
import { describe, expect, it } from 'vitest';
import { MemoryStore, SimulatedCrash } from '../../ports/fakes/memory-store.ts';
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
  type TestFleet,
  untilAtRest,
  WHY,
} from '../testing/test-fleet.ts';

const SOURCES: readonly (readonly [string, SourceSettings])[] = [
  ['image', IMAGE_SOURCE],
  ['full clone', templateSource('full')],
  ['linked clone', templateSource('linked')],
  ['netboot', { kind: 'netboot' }],
];

interface Scenario {
  readonly name: string;
  readonly before: number;
  readonly wanted: number;
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'create', before: 0, wanted: 2 },
  { name: 'delete', before: 2, wanted: 1 },
];

function settingsOf(source: SourceSettings) {
  const isNetboot = source.kind === 'netboot';
  return someSettings([
    aPool({ source, network: STATIC_NETWORK, ...(isNetboot && { seed: undefined }) }),
  ]);
}

async function prepared(source: SourceSettings, { before, wanted }: Scenario): Promise<TestFleet> {
  const bench = aTestFleet(settingsOf(source));
  if (before > 0) {
    await bench.fleet.scaleTo('workers', before, WHY);
    await untilAtRest(bench.fleet, bench);
  }
  await bench.fleet.scaleTo('workers', wanted, WHY);
  return bench;
}

/** Drives until it dies or is done; what it did is in the mortal. */
async function lived(
  bench: TestFleet,
  source: SourceSettings,
  wish: CrashPoint,
): Promise<CrashingProcess> {
  const mortal = new CrashingProcess(bench.store, bench.hypervisor, wish);
  const settings = settingsOf(source);
  const fleet = aFleet({ ...bench, ...mortalParts(mortal), settings, seed: 2 });
  await untilAtRest(fleet, { store: mortal.store, clock: bench.clock }).catch((error: unknown) => {
    if (!(error instanceof SimulatedCrash)) throw error;
  });
  return mortal;
}

function mortalParts({ store, hypervisor }: CrashingProcess) {
  return { store, hypervisor };
}

async function expectExactly(bench: TestFleet, wanted: number, note: string): Promise<void> {
  const left = leftovers(bench.hypervisor);
  const alive = (await machinesIn(bench.store)).filter(({ phase }) => phase === 'ready');
  expect(left.vms, note).toHaveLength(wanted);
  expect(left.machines.toSorted(), note).toEqual(alive.map(({ id }) => id).sort());
  expect(left.isos, note).toEqual([]);
  expect(await addressesInUse(bench.store), note).toHaveLength(wanted);
}

async function afterwards(bench: TestFleet, source: SourceSettings, wanted: number): Promise<void> {
  const fleet = aFleet({ ...bench, settings: settingsOf(source), seed: 3 });
  await untilAtRest(fleet, bench);
  await expectExactly(bench, wanted, 'with the database');
}

async function withoutDatabase(
  bench: TestFleet,
  source: SourceSettings,
  wanted: number,
): Promise<void> {
  const fresh = { ...bench, store: new MemoryStore({ clock: bench.clock }) };
  const fleet = aFleet({ ...fresh, settings: settingsOf(source), seed: 4 });
  await untilAtRest(fleet, fresh);
  await fleet.scaleTo('workers', wanted, WHY);
  await untilAtRest(fleet, fresh);
  await expectExactly(fresh, wanted, 'without the database');
}

describe.each(SOURCES)('a crash, source %s', (_name, source) => {
  describe.each(SCENARIOS)('$name', (scenario) => {
    it('at every instant leaves a state to go on from', async () => {
      const calm = await lived(await prepared(source, scenario), source, { kind: 'never' });
      expect(calm.writes).toBeGreaterThan(5);
      const wishes: CrashPoint[] = [
        ...Array.from(
          { length: calm.writes },
          (_, at) => ({ kind: 'write', number: at + 1 }) as const,
        ),
        ...calm.calls.flatMap((_, at) => [
          { kind: 'unseen', number: at + 1 } as const,
          { kind: 'seen', number: at + 1 } as const,
        ]),
      ];
      for (const wish of wishes) {
        for (const judge of [afterwards, withoutDatabase]) {
          const bench = await prepared(source, scenario);
          await lived(bench, source, wish);
          await judge(bench, source, scenario.wanted).catch((cause: unknown) => {
            throw new Error(`after ${JSON.stringify(wish)}, ${judge.name}`, { cause });
          });
        }
      }
    });
  });
});

describe.each(SOURCES)('a lost answer, source %s', (_name, source) => {
  it.each(SCENARIOS)('$name: to any call is found out by looking', async (scenario) => {
    const calm = await lived(await prepared(source, scenario), source, { kind: 'never' });
    for (const method of new Set(calm.calls)) {
      const bench = await prepared(source, scenario);
      bench.hypervisor.dropResponse(method as Parameters<typeof bench.hypervisor.dropResponse>[0]);
      await lived(bench, source, { kind: 'never' });
      await expectExactly(bench, scenario.wanted, method);
    }
  });
});
