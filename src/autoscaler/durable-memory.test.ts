// SPDX-License-Identifier: Apache-2.0
import { expect, it, onTestFinished } from 'vitest';
import { aTestFleet, onePass, REASON } from '../fleet/testing/test-fleet.ts';
import type { PoolScaling } from '../model/pool.ts';
import { EMPTY_MEMORY } from '../scaling/index.ts';
import { DurableMemory, restoreMemory } from './durable-memory.ts';
import { TestSite } from './testing/test-site.ts';

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
      rememberScaling: async (pool, scaling) => {
        written.push(scaling);
        await fleet.rememberScaling(pool, scaling);
      },
    },
  });
  const failedRemovals = { 'replica-set': { count: 2, until: site.clock.now() + 60_000 } };
  await memory.save({ ...EMPTY_MEMORY, failedRemovals }, ['workers']);
  await memory.save({ ...EMPTY_MEMORY, failedRemovals }, ['workers']);
  expect(written).toHaveLength(1);
  expect(memory.restore()).toMatchObject({ failedRemovals });
  await memory.save({ ...EMPTY_MEMORY, failedRemovals: {} }, ['workers']);
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
  await memory.save(current, ['workers']);
  await memory.save(current, ['workers']);
  expect(written).toMatchObject([{ replacement }]);
});
