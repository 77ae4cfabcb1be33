// SPDX-License-Identifier: Apache-2.0
// The driver with records in Kubernetes, on virtual time.
import { expect, it, onTestFinished } from 'vitest';
import { createFleet, DriverRegistry } from '../../src/fleet/index.ts';
import { REGION, someSettings } from '../../src/fleet/testing/settings.ts';
import { aTestFleet, REASON } from '../../src/fleet/testing/test-fleet.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { MemoryCluster } from '../../src/ports/fakes/memory-cluster.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { Store } from '../../src/ports/store.ts';
import { StoreBench } from './store-bench.ts';

async function setUp() {
  const { clock, hypervisor } = aTestFleet();
  const bench = new StoreBench(clock);
  onTestFinished(() => bench.cleanup());
  const { state } = new MemoryCluster({ clock, random: new SeededRandom(6) });
  const startDriver = async (holder: string, seed: number) => {
    const driverRegistry = new DriverRegistry(clock);
    const store = await bench.open({ fence: driverRegistry });
    const fleet = createFleet({
      clock,
      store,
      hypervisors: new Map([[REGION, hypervisor]]),
      random: new SeededRandom(seed),
      settings: someSettings(undefined, { holder }),
      cluster: new MemoryCluster({ clock, random: new SeededRandom(seed), state }),
      driverRegistry,
    });
    const stop = new AbortController();
    const driving = fleet.runDriver({ signal: stop.signal });
    const end = () => {
      stop.abort();
      return advanceUntilSettled(clock, driving);
    };
    return { fleet, store, end };
  };
  return { clock, bench, startDriver };
}

const phasesOf = async (store: Store) =>
  (await store.machines.list()).map(({ value }) => value.phase);

it('what a driver has deferred is stored when it stops', async () => {
  const { clock, bench, startDriver } = await setUp();
  const { fleet, store, end } = await startDriver('a', 1);
  await fleet.scaleTo('workers', 1, REASON);
  while (!(await phasesOf(store)).includes('booting')) await clock.advance(1_000);
  await end();
  expect(bench.errors).toEqual([]);
  expect(await phasesOf(await bench.open())).toEqual(['booting']);
});

it('a new driver sees what the driver before has written, although its watches are silent', async () => {
  const { clock, bench, startDriver } = await setUp();
  const a = await startDriver('a', 1);
  const b = await startDriver('b', 2);
  await clock.advance(3_000);
  bench.sim.watches.stall();
  await a.fleet.scaleTo('workers', 1, REASON);
  while (!(await phasesOf(a.store)).includes('booting')) await clock.advance(1_000);
  expect(await phasesOf(b.store)).toEqual([]);
  bench.sim.watches.stall();
  await a.end();
  await clock.advance(3_000);
  expect(await phasesOf(b.store)).toEqual(['ready']);
  await b.end();
});
