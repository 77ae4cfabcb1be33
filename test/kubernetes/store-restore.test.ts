// SPDX-License-Identifier: Apache-2.0
// The API server is restored from an older backup while processes run: resource versions go back, objects vanish and come
// back. On virtual time.
import { expect, it, onTestFinished } from 'vitest';
import { aMachine, aMachineId } from '../../src/ports/fakes/sample-records.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Store } from '../../src/ports/store.ts';
import { StoreBench } from './store-bench.ts';

const [KEPT, GONE, BACK] = [aMachineId(1), aMachineId(2), aMachineId(3)];

async function setUp() {
  const clock = new VirtualClock();
  const bench = new StoreBench(clock);
  onTestFinished(() => bench.cleanup());
  const store = await bench.open({ watchSeconds: 10 });
  const seconds = async (count: number) => {
    for (let second = 0; second < count; second += 1) await clock.advance(1_000);
  };
  return { bench, store, seconds };
}

const phasesOf = async (store: Store) =>
  Object.fromEntries((await store.machines.list()).map(({ key, value }) => [key, value.phase]));

it.each(['break', 'end'])(
  'has the records of the backup when its watches %s, whether it had received the writes since or not',
  async (how) => {
    const { bench, store, seconds } = await setUp();
    const other = await bench.open({ watchSeconds: 10 });
    const kept = await store.machines.create(KEPT, aMachine());
    const back = await store.machines.create(BACK, aMachine());
    const backup = bench.sim.snapshot();
    await store.machines.replace(kept, aMachine({ phase: 'ready' }));
    await seconds(15);
    bench.sim.watches.stall();
    await store.machines.remove(back);
    await store.machines.create(GONE, aMachine());
    await seconds(1);
    if (how === 'end') bench.sim.watches.sendAndClose('');
    bench.sim.restore(backup);
    await seconds(40);
    for (const each of [store, other]) {
      expect(await phasesOf(each)).toEqual({ [KEPT]: 'requested', [BACK]: 'requested' });
      expect(each.staleness()).toBeUndefined();
    }
  },
);

it('sees later changes of the restored objects, and can change them', async () => {
  const { bench, store, seconds } = await setUp();
  await store.machines.create(KEPT, aMachine());
  const backup = bench.sim.snapshot();
  for (const phase of ['placed', 'creating', 'booting'] as const) {
    const seen = await store.machines.get(KEPT);
    if (seen !== undefined) await store.machines.replace(seen, aMachine({ phase }));
  }
  bench.sim.restore(backup);
  await seconds(40);
  const other = await bench.open({ watchSeconds: 10 });
  const [seen] = await other.machines.list();
  if (seen !== undefined) await other.machines.replace(seen, aMachine({ phase: 'placed' }));
  await seconds(1);
  expect(await phasesOf(store)).toEqual({ [KEPT]: 'placed' });
  const [newest] = await store.machines.list();
  if (newest !== undefined) await store.machines.replace(newest, aMachine({ phase: 'deleting' }));
  await seconds(1);
  expect(await phasesOf(other)).toEqual({ [KEPT]: 'deleting' });
});

it('reads an object again that has the same version with another content', async () => {
  const { bench, store, seconds } = await setUp();
  const first = await store.machines.create(KEPT, aMachine());
  const backup = bench.sim.snapshot();
  await store.machines.replace(first, aMachine({ phase: 'placed' }));
  await store.machines.create(GONE, aMachine());
  await seconds(15);
  bench.sim.restore(backup);
  const writer = await bench.open({ watchSeconds: 10 });
  const [seen] = await writer.machines.list();
  if (seen !== undefined) await writer.machines.replace(seen, aMachine({ phase: 'deleting' }));
  await seconds(40);
  expect(await phasesOf(store)).toEqual({ [KEPT]: 'deleting' });
});

it('notices a restore that the watch could not notice when a write is refused', async () => {
  const { bench, store, seconds } = await setUp();
  const created = await store.machines.create(KEPT, aMachine());
  const backup = bench.sim.snapshot();
  const placed = await store.machines.replace(created, aMachine({ phase: 'placed' }));
  await store.machines.create(GONE, aMachine());
  await seconds(15);
  bench.sim.restore(backup);
  const other = await bench.open({ watchSeconds: 10 });
  for (const id of [BACK, aMachineId(4)]) await other.machines.create(id, aMachine());
  await seconds(40);
  const refused = store.machines.replace(placed, aMachine({ phase: 'creating' }));
  await expect(refused).rejects.toMatchObject({ code: 'RECORD_CHANGED' });
  await seconds(5);
  expect(await phasesOf(store)).toEqual(await phasesOf(other));
  const seen = await store.machines.get(KEPT);
  if (seen !== undefined) await store.machines.replace(seen, aMachine({ phase: 'creating' }));
  await seconds(1);
  expect(await phasesOf(other)).toMatchObject({ [KEPT]: 'creating' });
});

it('returns and shows what it writes before its watch has noticed the restore', async () => {
  const { bench, store, seconds } = await setUp();
  const created = await store.machines.create(KEPT, aMachine());
  const backup = bench.sim.snapshot();
  for (const id of [GONE, BACK]) await store.machines.create(id, aMachine({ id }));
  await seconds(15);
  bench.sim.restore(backup);
  const placed = await store.machines.replace(created, aMachine({ phase: 'placed' }));
  expect(placed.value.phase).toBe('placed');
  expect(await store.machines.get(KEPT)).toEqual(placed);
  await store.machines.replace(placed, aMachine({ phase: 'creating' }));
  await seconds(40);
  expect(await phasesOf(store)).toEqual({ [KEPT]: 'creating' });
});
