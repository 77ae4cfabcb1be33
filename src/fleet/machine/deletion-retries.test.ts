// SPDX-License-Identifier: Apache-2.0
// What is not a machine's fault costs it nothing: nobody who drives, a side that is away, rights that are missing, a
// wall clock that is set, a person who took the VM over.
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Bug, Unauthorized, Unreachable } from '../../ports/errors.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { CapacityForecast } from '../capacity/capacity-forecast.ts';
import { DriverState } from '../context/driver-state.ts';
import { recentRegionViews } from '../context/region-views.ts';
import { Reconciler } from '../driver/reconciler.ts';
import { RecordCache } from '../records/record-cache.ts';
import {
  aJoiningTestFleet,
  type JoiningTestFleet,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { REGION } from '../testing/settings.ts';
import { aFleet, leftovers, machinesIn, onePass, untilAtRest, WHY } from '../testing/test-fleet.ts';

const MINUTE_MS = 60_000;

async function rounds(bench: JoiningTestFleet, count: number): Promise<void> {
  for (let round = 0; round < count; round += 1) await onePass(bench.fleet, bench);
}

async function aJoiningMachine(bench: JoiningTestFleet) {
  bench.guests.behaviour = { mute: true };
  await bench.fleet.scaleTo('workers', 1, WHY);
  await rounds(bench, 25);
  return onlyMachine(bench, 'joining');
}

async function aReadyMachine(bench: JoiningTestFleet) {
  await bench.fleet.scaleTo('workers', 1, WHY);
  await untilAtRest(bench.fleet, bench);
  return onlyMachine(bench, 'ready');
}

async function onlyMachine(bench: JoiningTestFleet, phase: string) {
  const [machine, ...others] = await machinesIn(bench.store);
  expect(others).toEqual([]);
  if (machine?.placement === undefined) throw new Error('there is no machine');
  expect(machine.phase).toBe(phase);
  return { ...machine, placement: machine.placement };
}

function anotherProcess(bench: JoiningTestFleet): JoiningTestFleet {
  return { ...bench, fleet: aFleet({ ...bench, settings: joiningSettings(), seed: 2 }) };
}

/** Time passes in the guests alone: nobody drives. */
async function unattended(bench: JoiningTestFleet, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    await bench.clock.advance(MINUTE_MS);
    bench.guests.settle();
  }
}

describe('while nobody drives', () => {
  it('a machine that joins meanwhile is ready, however long that was', async () => {
    const bench = aJoiningTestFleet();
    const { id } = await aJoiningMachine(bench);
    bench.guests.behaviour = {};
    await unattended(bench, 40);
    const next = anotherProcess(bench);
    await untilAtRest(next.fleet, next);
    expect((await onlyMachine(next, 'ready')).id).toBe(id);
  });

  it('a machine that could not join is given its time once there is a driver again', async () => {
    const bench = aJoiningTestFleet();
    const { id } = await aJoiningMachine(bench);
    await unattended(bench, 40);
    const next = anotherProcess(bench);
    await rounds(next, 5);
    next.guests.behaviour = {};
    await untilAtRest(next.fleet, next);
    expect((await onlyMachine(next, 'ready')).id).toBe(id);
  });

  it('time does not stand still: who does not come is given up in the end', async () => {
    const bench = aJoiningTestFleet();
    await aJoiningMachine(bench);
    const next = anotherProcess(bench);
    await rounds(next, 5);
    await bench.clock.advance(6 * MINUTE_MS);
    await untilAtRest(next.fleet, next);
    expect((await machinesIn(bench.store))[0]?.failure?.code).toBe('REGISTRATION_TIMED_OUT');
  });
});

describe('while Proxmox is away', () => {
  it('a machine whose Node is Ready meanwhile is not overdue', async () => {
    const bench = aJoiningTestFleet();
    const { id } = await aJoiningMachine(bench);
    bench.guests.behaviour = {};
    for (let minute = 0; minute < 40; minute += 1) {
      bench.hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'gone'));
      await bench.clock.advance(MINUTE_MS);
      await rounds(bench, 1);
    }
    await untilAtRest(bench.fleet, bench);
    expect((await onlyMachine(bench, 'ready')).id).toBe(id);
  });
});

describe('without the rights to change a Node', () => {
  it('a machine that has joined is not thrown away; it is tried again', async () => {
    const bench = aJoiningTestFleet();
    for (let time = 0; time < 5; time += 1) {
      bench.cluster.failNext('changeNode', new Unauthorized('PERMISSION_MISSING', 'not now'));
    }
    await aReadyMachine(bench);
    const told = (await bench.store.journal.read()).map(({ reason }) => reason);
    expect(told).toContain('PERMISSION_MISSING');
    expect(told).not.toContain('PoolBackedOff');
  });
});

describe('an answer that makes no sense', () => {
  it('is no reason to throw a machine away that has joined', async () => {
    const bench = aJoiningTestFleet();
    bench.cluster.failNext('changeNode', new Bug('UNEXPECTED_ANSWER', 'not JSON'));
    await aReadyMachine(bench);
    expect((await bench.store.journal.read()).map(({ reason }) => reason)).toContain(
      'UNEXPECTED_ANSWER',
    );
  });
});

describe('when the wall clock is set back', () => {
  it('no old view of Proxmox is decided on', async () => {
    const bench = aJoiningTestFleet();
    const { clock, hypervisor } = bench;
    const options = { ...bench, hypervisors: new Map([['memory', hypervisor]]) } as never;
    const state = new DriverState();
    const recent = () => recentRegionViews(options, { viewAgeMs: 2_000 }, state);
    const first = await recent();
    expect(await recent()).toBe(first);
    clock.setWallClock(clock.now() - 60 * MINUTE_MS);
    await clock.advance(MINUTE_MS);
    expect(await recent()).not.toBe(first);
  });

  it('no old view of Kubernetes is decided on', async () => {
    const bench = aJoiningTestFleet();
    await aReadyMachine(bench);
    bench.cluster.disconnect();
    bench.clock.setWallClock(bench.clock.now() - 60 * MINUTE_MS);
    await bench.clock.advance(3 * MINUTE_MS);
    await rounds(bench, 1);
    expect((await bench.store.journal.read()).at(-1)?.reason).toBe('ViewStale');
  });
});

describe('a VM that a person took over', () => {
  it('keeps its Node: it is still there', async () => {
    const bench = aJoiningTestFleet();
    const { placement } = await aReadyMachine(bench);
    const vm = bench.hypervisor.state.vms.get(placement.vmId);
    vm?.options.set('description', 'mine now');
    vm?.options.set('name', 'mine');
    await rounds(bench, 3);
    await bench.clock.advance(6 * MINUTE_MS);
    await untilAtRest(bench.fleet, bench);
    expect((await machinesIn(bench.store)).map(({ phase }) => phase)).toEqual(['gone']);
    expect(leftovers(bench.hypervisor).vms).toEqual([placement.vmId]);
    expect(bench.cluster.state.nodes.get(placement.name)?.ready).toBe(true);
  });
});

describe('a person who has orphans removed at once', () => {
  it('loses no machine whose VM is there, only because its Node is not', async () => {
    const bench = aJoiningTestFleet(joiningSettings({ lostAfterMs: 0 }));
    const { id, placement } = await aReadyMachine(bench);
    bench.guests.behaviour = { mute: true };
    bench.cluster.state.removeNode(placement.name);
    await rounds(bench, 5);
    expect((await onlyMachine(bench, 'ready')).id).toBe(id);
  });
});

describe('what a process remembers', () => {
  it('holds no token longer than it is needed, and nothing of a machine that is over', async () => {
    const bench = aJoiningTestFleet();
    const { store, clock, hypervisor } = bench;
    const state = new DriverState();
    const errors: unknown[] = [];
    const engine = {
      ...bench,
      settings: joiningSettings(),
      random: new SeededRandom(3),
      hypervisors: new Map([[REGION, hypervisor]]),
      cache: new RecordCache(store),
      forecast: new CapacityForecast(),
    };
    const reconciler = new Reconciler(engine, { state, onError: (error) => errors.push(error) });
    const lease = await store.leases.acquire({ name: 'r', holder: 't', durationMs: 3_600_000 });
    const work = async (count: number) => {
      for (let round = 0; round < count; round += 1) {
        bench.guests.settle();
        await reconciler.pass({ lease, mayAct: () => true });
        await reconciler.drain();
        await clock.advance(1_000);
      }
    };
    await bench.fleet.scaleTo('workers', 1, WHY);
    await work(40);
    const { id, placement } = await onlyMachine(bench, 'ready');
    expect(bench.cluster.state.tokens).toHaveLength(1);
    expect(state.tokens.size).toBe(0);
    bench.guests.behaviour = { mute: true };
    bench.cluster.state.removeNode(placement.name);
    await work(2);
    await bench.fleet.scaleTo('workers', 0, WHY);
    await work(20);
    await clock.advance(40 * MINUTE_MS);
    await work(2);
    expect(await machinesIn(store)).toEqual([]);
    expect(inspect(state, { depth: 6 })).not.toContain(id);
  });
});
