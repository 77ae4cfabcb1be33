// SPDX-License-Identifier: Apache-2.0
// The crash matrix with the real client and the simulator. Crash points are recorded from a run without a crash, per
// source, for creation and deletion; each is tested with the database kept and with it lost.
import { describe, expect, it } from 'vitest';
import { CrashingProcess, type CrashPoint } from '../../src/fleet/testing/crashing-process.ts';
import { MemoryStore, SimulatedCrash } from '../../src/ports/fakes/memory-store.ts';
import {
  countAddressesInUse,
  createProcess,
  createSite,
  REASON,
  readInventory,
  readMachines,
  reconcileUntilIdle,
  type Site,
  SOURCES,
  type SourceName,
} from './simulated-site.ts';

const SCENARIOS = [
  { name: 'create', before: 0, targetSize: 1 },
  { name: 'delete', before: 1, targetSize: 0 },
] as const;

type Scenario = (typeof SCENARIOS)[number];

async function prepareSite(source: SourceName, { before, targetSize }: Scenario): Promise<Site> {
  const site = createSite(source);
  const fleet = createProcess(site);
  if (before > 0) {
    await fleet.scaleTo('workers', before, REASON);
    await reconcileUntilIdle(site, fleet);
  }
  await fleet.scaleTo('workers', targetSize, REASON);
  return site;
}

async function runUntilCrash(site: Site, crashPoint: CrashPoint): Promise<CrashingProcess> {
  const process = new CrashingProcess(site.store, site.hypervisor, crashPoint);
  const { store, hypervisor } = process;
  const fleet = createProcess(site, { store, hypervisor, seed: 2 });
  await reconcileUntilIdle(site, fleet, { store }).catch((error: unknown) => {
    if (!(error instanceof SimulatedCrash)) throw error;
  });
  return process;
}

async function expectMachineCount(site: Site, targetSize: number): Promise<void> {
  const left = readInventory(site);
  const alive = (await readMachines(site.store)).filter(({ phase }) => phase === 'ready');
  expect(left.vms).toHaveLength(targetSize);
  expect(left.machines).toEqual(alive.map(({ id }) => id));
  expect(left.isos).toEqual([]);
  expect(left.disks).toHaveLength(targetSize);
  expect(await countAddressesInUse(site.store)).toBe(targetSize);
}

async function recoverWithDatabase(site: Site, targetSize: number): Promise<void> {
  await reconcileUntilIdle(site, createProcess(site, { seed: 3 }));
  await expectMachineCount(site, targetSize);
}

async function recoverWithoutDatabase(site: Site, targetSize: number): Promise<void> {
  const fresh = { ...site, store: new MemoryStore({ clock: site.clock }) };
  const fleet = createProcess(fresh, { seed: 4 });
  await reconcileUntilIdle(fresh, fleet);
  await fleet.scaleTo('workers', targetSize, REASON);
  await reconcileUntilIdle(fresh, fleet);
  await expectMachineCount(fresh, targetSize);
}

function listCrashPoints({ writes, calls }: CrashingProcess): readonly CrashPoint[] {
  return [
    ...Array.from({ length: writes }, (_, at) => ({ kind: 'write', number: at + 1 }) as const),
    ...calls.flatMap((_, at) => [
      { kind: 'unseen', number: at + 1 } as const,
      { kind: 'seen', number: at + 1 } as const,
    ]),
  ];
}

describe.each(Object.keys(SOURCES) as SourceName[])('a fleet with machines from %s', (source) => {
  it.each(SCENARIOS)(
    '$name: recovers from a crash after every durable write and call',
    async (scenario) => {
      const undisturbed = await runUntilCrash(await prepareSite(source, scenario), {
        kind: 'never',
      });
      const crashPoints = listCrashPoints(undisturbed);
      expect(crashPoints.length).toBeGreaterThan(8);
      for (const crashPoint of crashPoints) {
        for (const recover of [recoverWithDatabase, recoverWithoutDatabase]) {
          const site = await prepareSite(source, scenario);
          await runUntilCrash(site, crashPoint);
          await recover(site, scenario.targetSize).catch((cause: unknown) => {
            throw new Error(`after ${JSON.stringify(crashPoint)}, ${recover.name}`, { cause });
          });
        }
      }
    },
  );
});
