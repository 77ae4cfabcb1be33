// SPDX-License-Identifier: Apache-2.0
// The crash matrix with the real client and the simulator: instants recorded from a run without a crash, per
// source, for creation and deletion, with the database kept and with it deleted.
import { describe, expect, it } from 'vitest';
import { CrashingProcess, type CrashPoint } from '../../src/fleet/testing/crashing-process.ts';
import { MemoryStore, SimulatedCrash } from '../../src/ports/fakes/memory-store.ts';
import {
  addressesInUse,
  aProcess,
  aSite,
  machinesIn,
  remains,
  type Site,
  SOURCES,
  type SourceName,
  untilAtRest,
  WHY,
} from './simulated-site.ts';

const SCENARIOS = [
  { name: 'create', before: 0, wanted: 1 },
  { name: 'delete', before: 1, wanted: 0 },
] as const;

type Scenario = (typeof SCENARIOS)[number];

async function prepared(source: SourceName, { before, wanted }: Scenario): Promise<Site> {
  const site = aSite(source);
  const fleet = aProcess(site);
  if (before > 0) {
    await fleet.scaleTo('workers', before, WHY);
    await untilAtRest(site, fleet);
  }
  await fleet.scaleTo('workers', wanted, WHY);
  return site;
}

async function lived(site: Site, wish: CrashPoint): Promise<CrashingProcess> {
  const mortal = new CrashingProcess(site.store, site.hypervisor, wish);
  const { store, hypervisor } = mortal;
  const fleet = aProcess(site, { store, hypervisor, seed: 2 });
  await untilAtRest(site, fleet, { store }).catch((error: unknown) => {
    if (!(error instanceof SimulatedCrash)) throw error;
  });
  return mortal;
}

async function expectExactly(site: Site, wanted: number): Promise<void> {
  const left = remains(site);
  const alive = (await machinesIn(site.store)).filter(({ phase }) => phase === 'ready');
  expect(left.vms).toHaveLength(wanted);
  expect(left.machines).toEqual(alive.map(({ id }) => id));
  expect(left.isos).toEqual([]);
  expect(left.disks).toHaveLength(wanted);
  expect(await addressesInUse(site.store)).toBe(wanted);
}

async function withDatabase(site: Site, wanted: number): Promise<void> {
  await untilAtRest(site, aProcess(site, { seed: 3 }));
  await expectExactly(site, wanted);
}

async function withoutDatabase(site: Site, wanted: number): Promise<void> {
  const fresh = { ...site, store: new MemoryStore({ clock: site.clock }) };
  const fleet = aProcess(fresh, { seed: 4 });
  await untilAtRest(fresh, fleet);
  await fleet.scaleTo('workers', wanted, WHY);
  await untilAtRest(fresh, fleet);
  await expectExactly(fresh, wanted);
}

function wishesOf({ writes, calls }: CrashingProcess): readonly CrashPoint[] {
  return [
    ...Array.from({ length: writes }, (_, at) => ({ kind: 'write', number: at + 1 }) as const),
    ...calls.flatMap((_, at) => [
      { kind: 'unseen', number: at + 1 } as const,
      { kind: 'seen', number: at + 1 } as const,
    ]),
  ];
}

describe.each(Object.keys(SOURCES) as SourceName[])('a crash, source %s', (source) => {
  it.each(SCENARIOS)(
    '$name: at every instant leaves a state to go on from',
    async (scenario) => {
      const calm = await lived(await prepared(source, scenario), { kind: 'never' });
      const wishes = wishesOf(calm);
      expect(wishes.length).toBeGreaterThan(8);
      for (const wish of wishes) {
        for (const judge of [withDatabase, withoutDatabase]) {
          const site = await prepared(source, scenario);
          await lived(site, wish);
          await judge(site, scenario.wanted).catch((cause: unknown) => {
            throw new Error(`after ${JSON.stringify(wish)}, ${judge.name}`, { cause });
          });
        }
      }
    },
    120_000,
  );
});
