// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { aTestFleet, onePass, REASON } from '../fleet/testing/test-fleet.ts';
import type { PoolScaling } from '../model/pool.ts';
import { DurableMemory } from './durable-memory.ts';

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
