// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aDrain, aMachine, aMachineId, anIntent, aPoolState } from '../fakes/sample-records.ts';
import { DEFER_MS } from '../store.ts';
import {
  expectPresent,
  type OpenStore,
  rejectionCode,
  withStore,
} from './store-fixture.contract.ts';

const ID = aMachineId();
const DEFERRABLE = { deferMs: DEFER_MS };

export function deferredContract(open: OpenStore): void {
  describe('deferrable writes', () => {
    it(
      'are visible to their process at once, with a new revision',
      withStore(open, async ({ store }) => {
        const created = await store.machines.create(ID, aMachine());
        const placed = aMachine({ phase: 'placed' });
        const since = await store.revision();
        const changed = await store.machines.replace(created, placed, DEFERRABLE);
        expect(changed.value).toEqual(placed);
        expect(await store.machines.get(ID)).toEqual(changed);
        expect(await store.changes(since)).toMatchObject({ machines: [changed] });
        const stale = store.machines.replace(created, aMachine(), DEFERRABLE);
        expect(await rejectionCode(stale)).toBe('RECORD_CHANGED');
        await store.machines.remove(changed, DEFERRABLE);
        expect(await store.machines.list()).toEqual([]);
        const gone = store.machines.replace(changed, aMachine(), DEFERRABLE);
        expect(await rejectionCode(gone)).toBe('RECORD_NOT_FOUND');
      }),
    );

    it(
      'are written with the next write, which other processes then see as a whole',
      withStore(open, async ({ store, reopen }) => {
        const other = await reopen();
        const created = await store.machines.create(ID, aMachine());
        const placed = await store.machines.replace(
          created,
          aMachine({ phase: 'placed', attempts: 1 }),
          DEFERRABLE,
        );
        await store.machines.replace(placed, { ...placed.value, phase: 'creating' });
        await other.synchronize();
        const seen = expectPresent(await other.machines.get(ID));
        expect(seen.value).toMatchObject({ phase: 'creating', attempts: 1 });
      }),
    );

    it(
      'are written when the store is closed, removals too',
      withStore(open, async ({ store, reopen }) => {
        const created = await store.machines.create(ID, aMachine());
        await store.machines.replace(created, aMachine({ phase: 'placed' }), DEFERRABLE);
        const gone = await store.machines.create('gone', aMachine());
        const drain = await store.drains.create('gone', aDrain());
        await store.machines.remove(gone, DEFERRABLE);
        await store.drains.remove(drain, DEFERRABLE);
        await store.close();
        const next = await reopen();
        const machines = (await next.machines.list()).map(({ key, value }) => [key, value.phase]);
        expect(machines).toEqual([[ID, 'placed']]);
        expect(await next.drains.list()).toEqual([]);
      }),
    );

    it(
      'of a new record take its key at once, and are written when the store is closed',
      withStore(open, async ({ store, reopen }) => {
        const created = await store.pools.create('a', aPoolState(), DEFERRABLE);
        expect(await store.pools.get('a')).toEqual(created);
        expect(await rejectionCode(store.pools.create('a', aPoolState()))).toBe('RECORD_EXISTS');
        const removed = await store.pools.create('b', aPoolState(), DEFERRABLE);
        await store.pools.remove(removed);
        const whole = await store.pools.create('c', aPoolState(), DEFERRABLE);
        await store.pools.replace(whole, aPoolState({ pool: 'c' }));
        const until = { deferMs: Number.POSITIVE_INFINITY };
        await store.pools.create('d', aPoolState(), until);
        await store.close();
        const next = await reopen();
        const pools = (await next.pools.list()).map(({ key, value }) => [key, value.pool]);
        const { pool } = aPoolState();
        expect(pools).toEqual([
          ['a', pool],
          ['c', 'c'],
          ['d', pool],
        ]);
      }),
    );

    it(
      'of a request that is done before it is written leave nothing open',
      withStore(open, async ({ store, reopen }) => {
        const intent = anIntent();
        const requested = await store.intents.create(intent.id, intent, DEFERRABLE);
        const done = { ...intent, state: 'done' } as const;
        const applied = await store.intents.replace(requested, done);
        expect(await store.intents.get(intent.id)).toEqual(applied);
        await store.close();
        const next = await reopen();
        const states = (await next.intents.list()).map(({ value }) => value.state);
        expect(states).not.toContain('open');
      }),
    );

    it(
      'of a former holder of the lease are refused',
      withStore(open, async ({ store }) => {
        const request = { name: 'l', durationMs: 1_000 };
        const fence = await store.leases.acquire({ ...request, holder: 'a' });
        const created = await store.machines.create(ID, aMachine(), { fence });
        await store.leases.acquire({ ...request, holder: 'b', endedHolder: 'a' });
        const late = store.machines.replace(created, aMachine(), { ...DEFERRABLE, fence });
        expect(await rejectionCode(late)).toBe('LEASE_LOST');
        expect(await store.machines.get(ID)).toEqual(created);
      }),
    );
  });
}
