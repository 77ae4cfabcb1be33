// SPDX-License-Identifier: Apache-2.0
import { expect, it, onTestFinished } from 'vitest';
import { aTestFleet, onePass, REASON } from '../fleet/testing/test-fleet.ts';
import type { PoolScaling } from '../model/pool.ts';
import { DEFER_MS } from '../ports/store.ts';
import { EMPTY_MEMORY } from '../scaling/index.ts';
import { DurableMemory, restoreMemory } from './durable-memory.ts';
import { aWorkerPool, TestSite } from './testing/test-site.ts';

const POOL = aWorkerPool();
type DurableFleet = ConstructorParameters<typeof DurableMemory>[0]['fleet'];

it('keeps failed removals over a restart, and writes them only when they change', async () => {
  const site = new TestSite();
  onTestFinished(() => site.stop());
  const { fleet } = site.start();
  await site.advance(5);
  const written: PoolScaling[] = [];
  const memory = new DurableMemory({
    clock: site.clock,
    fleet: {
      view: fleet.view,
      rememberScaling: async (...args) => {
        written.push(args[1]);
        await fleet.rememberScaling(...args);
      },
    },
  });
  const failedRemovals = { 'replica-set': { count: 2, until: site.clock.now() + 60_000 } };
  await memory.save({ ...EMPTY_MEMORY, failedRemovals }, [POOL]);
  await memory.save({ ...EMPTY_MEMORY, failedRemovals }, [POOL]);
  expect(written).toHaveLength(1);
  expect(memory.restore()).toMatchObject({ failedRemovals });
  await memory.save({ ...EMPTY_MEMORY, failedRemovals: {} }, [POOL]);
  expect(memory.restore().failedRemovals).toEqual({});
});

it('restores the newest failed removals, not those of a pool that is no longer in the config', async () => {
  const site = new TestSite();
  onTestFinished(() => site.stop());
  const { fleet } = site.start();
  await site.advance(5);
  const now = site.clock.now();
  const remember = (pool: string, { at, count }: { readonly at: number; readonly count: number }) =>
    fleet.rememberScaling(pool, {
      at,
      unneededSince: {},
      trials: {},
      streak: [],
      failedRemovals: { 'replica-set': { count, until: at + 60_000 } },
    });
  await remember('workers', { at: now, count: 3 });
  await remember('removed', { at: now - 1_000, count: 1 });
  const { failedRemovals } = restoreMemory(fleet.view.pools, now);
  expect(failedRemovals).toEqual({ 'replica-set': { count: 3, until: now + 60_000 } });
});

it('does not write a pool again whose record has the same content in another order of keys', async () => {
  const testFleet = aTestFleet();
  const { fleet, store, clock } = testFleet;
  const { machines } = await fleet.scaleTo('workers', 1, REASON);
  const written: PoolScaling[] = [];
  const rememberScaling = async (pool: string, scaling: PoolScaling) => {
    written.push(scaling);
    // As an API server returns it: with sorted keys.
    const { at, replaced, added } = scaling.replacement!;
    const stored = { ...scaling, replacement: { added, at, replaced } };
    await store.pools.create(pool, { pool, allocatable: {}, scaling: stored });
    await onePass(fleet, testFleet);
  };
  const memory = new DurableMemory({ fleet: { ...fleet, rememberScaling }, clock });
  const replacement = { at: clock.now(), replaced: machines, added: [] };
  const current = { assignments: {}, unneededSince: {}, replacement };
  await memory.save(current, [POOL]);
  await memory.save(current, [POOL]);
  expect(written).toMatchObject([{ replacement }]);
});

it('writes nothing for a machine that stays unneeded, except now and then while its time counts', async () => {
  const site = new TestSite([aWorkerPool({ limits: { ...POOL.limits, min: 1 } })]);
  onTestFinished(() => site.stop());
  const { fleet } = site.start();
  await site.advance(2 * 60);
  expect(await site.phases()).toEqual(['ready']);
  const countWrites = async (minutes: number) => {
    const lastWrite = () => fleet.view.pools.get('workers')?.scaling?.at;
    const times = new Set([lastWrite()]);
    for (let minute = 0; minute < minutes; minute += 1) {
      await site.advance(60);
      times.add(lastWrite());
    }
    return times.size - 1;
  };
  expect(await countWrites(8)).toBeGreaterThan(0);
  await site.advance(5 * 60);
  expect(await countWrites(60)).toBe(0);
});

it('defers what only confirms, but not that a machine is needed again', async () => {
  const { fleet, store, clock } = aTestFleet();
  const { machines } = await fleet.scaleTo('workers', 1, REASON);
  const written: unknown[] = [];
  const rememberScaling: DurableFleet['rememberScaling'] = async (pool, scaling, options) => {
    written.push(options);
    const state = { pool, allocatable: {}, scaling };
    const seen = await store.pools.get(pool);
    await (seen === undefined ? store.pools.create(pool, state) : store.pools.replace(seen, state));
    await fleet.view.refresh();
  };
  const memory = new DurableMemory({ fleet: { ...fleet, rememberScaling }, clock });
  const unneededSince = Object.fromEntries(machines.map((id) => [id, clock.now()]));
  for (let minute = 0; minute < 3; minute += 1) {
    await memory.save({ assignments: {}, unneededSince }, [POOL]);
    await clock.advance(60_000);
  }
  await memory.save({ assignments: {}, unneededSince: {} }, [POOL]);
  const confirmed = { deferMs: Number.POSITIVE_INFINITY };
  expect(written).toEqual([{ deferMs: DEFER_MS }, confirmed, confirmed, { deferMs: 0 }]);
});
