// SPDX-License-Identifier: Apache-2.0
// The driver with records in Kubernetes, on virtual time.
import { describe, expect, it, onTestFinished } from 'vitest';
import { createFleet, DriverRegistry } from '../../src/fleet/index.ts';
import { aJoiningTestFleet, joiningSettings } from '../../src/fleet/testing/joining-test-fleet.ts';
import { aPool, REGION, someSettings } from '../../src/fleet/testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  REASON,
} from '../../src/fleet/testing/test-fleet.ts';
import { RECONCILE_LEASE } from '../../src/model/lease.ts';
import { Conflict, NotFound, Unreachable } from '../../src/ports/errors.ts';
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

it('a VM that was missing, came back, and is missing again after a crash is waited for anew', async () => {
  const settings = someSettings();
  const parts = aTestFleet(settings);
  const { clock, hypervisor } = parts;
  const bench = new StoreBench(clock);
  onTestFinished(() => bench.cleanup());
  const store = await bench.open();
  const first = aFleet({ ...parts, store, settings, seed: 1 });
  const hourMs = 3_600_000;
  const held = { name: RECONCILE_LEASE, holder: 'test', durationMs: hourMs };
  let lease = await store.leases.acquire(held);
  const passes = async (count: number, fleet = first) => {
    for (let pass = 0; pass < count; pass += 1) {
      lease = await store.leases.renew(lease, hourMs);
      await fleet.reconcileOnce(lease);
      await clock.advance(1_000);
    }
  };
  await first.scaleTo('workers', 1, REASON);
  await passes(60);
  const { vms } = hypervisor.state;
  const [vmId = 0] = existingResources(hypervisor).vms;
  const vm = vms.get(vmId)!;
  vms.delete(vmId);
  await passes(40);
  await store.flush(lease);
  vms.set(vmId, vm);
  await passes(settings.lostAfterMs / 1_000 - 20);
  // The first driver is killed, and the VM is being moved when the second one begins.
  const left = await bench.open();
  const second = aFleet({ ...parts, store: left, settings, seed: 2 });
  vms.delete(vmId);
  await passes(3, second);
  expect(await phasesOf(left)).toEqual(['ready']);
});

it('a time that was corrected after a change of the clock is right after a crash', async () => {
  const settings = someSettings([aPool({ provisionTimeoutMs: 15 * 60_000 })]);
  const parts = aTestFleet(settings);
  const { clock, hypervisor } = parts;
  const bench = new StoreBench(clock);
  onTestFinished(() => bench.cleanup());
  const store = await bench.open();
  const first = aFleet({ ...parts, store, settings, seed: 1 });
  const hourMs = 3_600_000;
  const held = { name: RECONCILE_LEASE, holder: 'test', durationMs: hourMs };
  const passes = async (count: number, fleet = first) => {
    for (let pass = 0; pass < count; pass += 1) {
      await fleet.reconcileOnce(await store.leases.acquire(held));
      await clock.advance(1_000);
    }
  };
  hypervisor.onCall = ({ method }) => {
    if (method === 'guestIsUp') throw new Unreachable('PVE_UNREACHABLE', 'no route to host');
  };
  await first.scaleTo('workers', 1, REASON);
  await passes(60);
  expect(await phasesOf(store)).toEqual(['booting']);
  clock.setWallClock(clock.now() + hourMs);
  await passes(20);
  const left = await bench.open();
  const second = aFleet({ ...parts, store: left, settings, seed: 2 });
  await passes(5, second);
  expect(await phasesOf(left)).toEqual(['booting']);
});

describe('a driver that goes on while its records are restored from a backup', () => {
  const HOUR_MS = 3_600_000;

  async function setUpDriver() {
    const parts = aJoiningTestFleet();
    const { clock, guests, hypervisor } = parts;
    const bench = new StoreBench(clock);
    onTestFinished(() => bench.cleanup());
    const store = await bench.open({ watchSeconds: 10 });
    const fleet = aFleet({ ...parts, store, settings: joiningSettings(), seed: 1 });
    const held = { name: RECONCILE_LEASE, holder: 'test', durationMs: HOUR_MS };
    let lease = await store.leases.acquire(held);
    const passUntil = async (isDone: () => Promise<boolean>) => {
      for (let pass = 0; pass < 600; pass += 1) {
        if (await isDone()) return;
        guests.settle();
        lease = await store.leases.renew(lease, HOUR_MS);
        // A pass that writes to a record that has just vanished fails, and the driver goes on with the next one.
        await fleet.reconcileOnce(lease).catch((error: unknown) => {
          if (!(error instanceof NotFound || error instanceof Conflict)) throw error;
        });
        await clock.advance(1_000);
      }
      expect.unreachable(`after 600 passes: ${(await phasesOf(store)).join(' ')}`);
    };
    const passes = (count: number) => {
      let left = count;
      return passUntil(() => Promise.resolve((left -= 1) < 0));
    };
    const scaleTo = async (size: number) => {
      await fleet.scaleTo('workers', size, REASON);
      await passUntil(async () => {
        const phases = await phasesOf(store);
        return phases.filter((phase) => phase === 'ready').length === size;
      });
    };
    const vms = () => existingResources(hypervisor).vms.toSorted((a, b) => a - b);
    const storedPhases = async () => phasesOf(await bench.open());
    return { bench, store, fleet, hypervisor, passUntil, passes, scaleTo, vms, storedPhases };
  }

  it('adopts the machines that the backup does not have', async () => {
    const { bench, passes, scaleTo, vms, hypervisor, storedPhases } = await setUpDriver();
    await scaleTo(1);
    const backup = bench.sim.snapshot();
    await scaleTo(3);
    const before = vms();
    bench.sim.restore(backup);
    await passes(120);
    expect(vms()).toEqual(before);
    expect(await storedPhases()).toEqual(['ready', 'ready', 'ready']);
    expect(hypervisor.calls.filter(({ method }) => method === 'destroyVm')).toEqual([]);
  });

  it.each(['creating', 'configuring', 'booting', 'joining'] as const)(
    'completes a machine once whose record vanishes while it is %s',
    async (phase) => {
      const { bench, store, fleet, passUntil, passes, vms, storedPhases } = await setUpDriver();
      const backup = bench.sim.snapshot();
      await fleet.scaleTo('workers', 1, REASON);
      await passUntil(async () => (await phasesOf(store)).includes(phase));
      bench.sim.restore(backup);
      await passes(200);
      expect(vms()).toHaveLength(1);
      expect(await storedPhases()).toEqual(['ready']);
    },
  );

  it('does not create a machine again that was deleted since', async () => {
    const { bench, fleet, passUntil, passes, scaleTo, vms, storedPhases } = await setUpDriver();
    await scaleTo(2);
    const backup = bench.sim.snapshot();
    await fleet.scaleTo('workers', 1, REASON);
    await passUntil(() => Promise.resolve(vms().length === 1));
    const before = vms();
    bench.sim.restore(backup);
    await passes(400);
    expect(vms()).toEqual(before);
    expect((await storedPhases()).filter((phase) => phase === 'ready')).toHaveLength(1);
  });
});
