// SPDX-License-Identifier: Apache-2.0
// The driver with records in Kubernetes, on virtual time.
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FleetSettings } from '../../src/fleet/context/settings.ts';
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

const HOUR_MS = 3_600_000;

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
  return { clock, bench, hypervisor, startDriver };
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

it('replicas that accept requests at the same instant create no more than the maximum together', async () => {
  const { clock, hypervisor, startDriver } = await setUp();
  const replicas = await Promise.all(['a', 'b', 'c'].map((holder, at) => startDriver(holder, at)));
  await clock.advance(3_000);
  await Promise.all(replicas.map(({ fleet }) => fleet.request('workers', 6, REASON)));
  for (let second = 0; second < 90; second += 1) await clock.advance(1_000);
  expect(existingResources(hypervisor).vms).toHaveLength(10);
  for (const { fleet, store } of replicas) {
    const phases = await phasesOf(store);
    expect(phases.filter((phase) => phase === 'ready')).toHaveLength(10);
    expect(phases.filter((phase) => phase === 'failed')).toHaveLength(8);
    await fleet.view.refresh();
    expect(fleet.view.index.membersOf('workers')).toHaveLength(10);
  }
  for (const { end } of replicas) await end();
});

it('an API server that has just been restarted, and does not know its roles yet, fails no machine', async () => {
  const { clock, bench, startDriver } = await setUp();
  const { fleet, store, end } = await startDriver('a', 1);
  await clock.advance(3_000);
  await fleet.scaleTo('workers', 3, REASON);
  while (!(await phasesOf(store)).includes('creating')) await clock.advance(100);
  const { faults, watches } = bench.sim;
  watches.disconnect();
  faults.add({ verb: 'WATCH', fault: { kind: 'disconnect' }, times: 3 });
  faults.add({ verb: 'PUT', fault: { kind: 'status', status: 403 }, times: 2 });
  for (let second = 0; second < 120; second += 1) await clock.advance(1_000);
  expect(await phasesOf(store)).toEqual(['ready', 'ready', 'ready']);
  const reasons = (await store.journal.read({ limit: 100 })).map(({ reason }) => reason);
  expect(reasons).not.toContain('PERMISSION_MISSING');
  expect(reasons).not.toContain('PoolBackedOff');
  await end();
});

describe('a driver that is killed', () => {
  async function setUpPasses(settings: FleetSettings) {
    const parts = aTestFleet(settings);
    const { clock, hypervisor } = parts;
    const bench = new StoreBench(clock);
    onTestFinished(() => bench.cleanup());
    const store = await bench.open();
    const fleet = aFleet({ ...parts, store, settings, seed: 1 });
    const held = { name: RECONCILE_LEASE, holder: 'test', durationMs: HOUR_MS };
    let lease = await store.leases.acquire(held);
    const passes = async (count: number, driver = fleet) => {
      // A change of the clock may have ended the last one.
      lease = await store.leases.acquire(held);
      for (let pass = 0; pass < count; pass += 1) {
        await driver.reconcileOnce(lease);
        await clock.advance(1_000);
      }
    };
    /** What the first driver has not written is lost. */
    const startSuccessor = async () => {
      const left = await bench.open();
      return { left, successor: aFleet({ ...parts, store: left, settings, seed: 2 }) };
    };
    const flush = () => store.flush(lease);
    return { clock, hypervisor, store, fleet, passes, flush, startSuccessor };
  }

  it('leaves no time since when a VM was missing that has come back', async () => {
    const settings = someSettings();
    const { hypervisor, fleet, passes, flush, startSuccessor } = await setUpPasses(settings);
    await fleet.scaleTo('workers', 1, REASON);
    await passes(60);
    const { vms } = hypervisor.state;
    const [vmId = 0] = existingResources(hypervisor).vms;
    const vm = vms.get(vmId)!;
    vms.delete(vmId);
    await passes(40);
    await flush();
    vms.set(vmId, vm);
    await passes(settings.lostAfterMs / 1_000 - 20);
    const { left, successor } = await startSuccessor();
    // It is being moved when the second driver begins.
    vms.delete(vmId);
    await passes(3, successor);
    expect(await phasesOf(left)).toEqual(['ready']);
  });

  it('leaves the times that it has corrected after a change of the clock', async () => {
    const settings = someSettings([aPool({ provisionTimeoutMs: 15 * 60_000 })]);
    const { clock, hypervisor, store, fleet, passes, startSuccessor } = await setUpPasses(settings);
    hypervisor.onCall = ({ method }) => {
      if (method === 'guestIsUp') throw new Unreachable('PVE_UNREACHABLE', 'no route to host');
    };
    await fleet.scaleTo('workers', 1, REASON);
    await passes(60);
    expect(await phasesOf(store)).toEqual(['booting']);
    clock.setWallClock(clock.now() + HOUR_MS);
    await passes(20);
    const { left, successor } = await startSuccessor();
    await passes(5, successor);
    expect(await phasesOf(left)).toEqual(['booting']);
  });

  it('leaves no addresses of a guest that has got others since', async () => {
    const settings = someSettings([aPool({ onStopped: 'restart' })]);
    const { hypervisor, fleet, passes, startSuccessor } = await setUpPasses(settings);
    let address = '10.0.0.7/24';
    hypervisor.guestInterfaces = () =>
      Promise.resolve([{ name: 'eth0', mac: 'bc:24:11:00:00:01', addresses: [address] }]);
    await fleet.scaleTo('workers', 1, REASON);
    await passes(60);
    address = '10.0.0.9/24';
    for (const vm of hypervisor.state.vms.values()) vm.startedAt = undefined;
    await passes(20);
    const { left, successor } = await startSuccessor();
    await passes(5, successor);
    const [machine] = await left.machines.list();
    expect(machine?.value.guestAddresses).toEqual([address]);
  });
});

describe('a driver that goes on while its records are restored from a backup', () => {
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
    const storedPhases = async () => phasesOf(await bench.open());
    /** Until a backup contains it. */
    const scaleTo = async (size: number) => {
      await fleet.scaleTo('workers', size, REASON);
      await passUntil(async () => {
        const phases = await storedPhases();
        return phases.filter((phase) => phase === 'ready').length === size;
      });
    };
    const vms = () => existingResources(hypervisor).vms.toSorted((a, b) => a - b);
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
