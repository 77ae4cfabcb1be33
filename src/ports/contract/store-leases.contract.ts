// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Lease } from '../../model/lease.ts';
import { aPoolState } from '../fakes/sample-records.ts';
import type { Store } from '../store.ts';
import {
  aborted,
  countOutcomes,
  type OpenStore,
  rejectionCode,
  withStore,
} from './store-fixture.contract.ts';

const NAME = 'reconcile';

function acquire(store: Store, holder: string, durationMs = 1_000): Promise<Lease> {
  return store.leases.acquire({ name: NAME, holder, durationMs });
}

export function leasesContract(open: OpenStore): void {
  describe('store leases', () => {
    it(
      'read as undefined before the first acquire',
      withStore(open, async ({ store }) => {
        expect(await store.leases.read(NAME)).toBeUndefined();
      }),
    );

    it(
      'are acquired when free, with an expiry on the clock',
      withStore(open, async ({ store, clock }) => {
        const lease = await acquire(store, 'a');
        expect(lease).toEqual({
          name: NAME,
          holder: 'a',
          token: lease.token,
          expiresAt: clock.now() + 1_000,
        });
        expect(await store.leases.read(NAME)).toEqual(lease);
      }),
    );

    it(
      'cannot be acquired while another holder has them; the error names holder and expiry',
      withStore(open, async ({ store, clock }) => {
        const lease = await acquire(store, 'a');
        await clock.advance(999);
        await expect(acquire(store, 'b')).rejects.toMatchObject({
          code: 'LEASE_HELD',
          facts: { holder: 'a', expiresAt: lease.expiresAt },
        });
        expect(await store.leases.read(NAME)).toEqual(lease);
      }),
    );

    it(
      'are free again when a wall clock that was years ahead is corrected',
      withStore(open, async ({ store, clock }) => {
        const right = clock.now();
        clock.setWallClock(right + 50 * 365 * 24 * 3_600_000);
        const early = await acquire(store, 'a');
        clock.setWallClock(right);
        expect(await rejectionCode(store.leases.renew(early, 1_000))).toBe('LEASE_LOST');
        const taken = await acquire(store, 'b');
        expect(taken.token).toBe(early.token + 1);
        expect(await rejectionCode(acquire(store, 'a'))).toBe('LEASE_HELD');
      }),
    );

    it(
      'last at most one hour',
      withStore(open, async ({ store, clock }) => {
        const lease = await acquire(store, 'a', 10 * 3_600_000);
        expect(lease.expiresAt).toBe(clock.now() + 3_600_000);
        expect(await store.leases.renew(lease, 10 * 3_600_000)).toEqual(lease);
        expect(await rejectionCode(acquire(store, 'b'))).toBe('LEASE_HELD');
      }),
    );

    it(
      'are free at their expiry, and the token grows by one',
      withStore(open, async ({ store, clock }) => {
        const first = await acquire(store, 'a');
        await clock.advance(1_000);
        expect(await store.leases.read(NAME)).toEqual(first);
        const second = await acquire(store, 'b');
        expect(second).toMatchObject({ holder: 'b', token: first.token + 1 });
        expect(await rejectionCode(acquire(store, 'a'))).toBe('LEASE_HELD');
      }),
    );

    it(
      'pass immediately to the same holder name and end its earlier lease',
      withStore(open, async ({ store }) => {
        const first = await acquire(store, 'a');
        const second = await acquire(store, 'a');
        expect(second.token).toBe(first.token + 1);
        expect(await rejectionCode(store.leases.renew(first, 1_000))).toBe('LEASE_LOST');
        expect(await rejectionCode(store.pools.create('x', aPoolState(), { fence: first }))).toBe(
          'LEASE_LOST',
        );
      }),
    );

    it(
      'pass immediately from a holder that is known to have ended, and from no other',
      withStore(open, async ({ store }) => {
        const first = await acquire(store, 'a');
        const request = { name: NAME, holder: 'b', durationMs: 1_000 };
        const other = store.leases.acquire({ ...request, endedHolder: 'c' });
        expect(await rejectionCode(other)).toBe('LEASE_HELD');
        const second = await store.leases.acquire({ ...request, endedHolder: 'a' });
        expect(second).toMatchObject({ holder: 'b', token: first.token + 1 });
        expect(await rejectionCode(store.leases.renew(first, 1_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'are renewed from now with the same token',
      withStore(open, async ({ store, clock }) => {
        const lease = await acquire(store, 'a');
        await clock.advance(600);
        const renewed = await store.leases.renew(lease, 500);
        expect(renewed).toEqual({ ...lease, expiresAt: clock.now() + 500 });
        await clock.advance(499);
        expect(await rejectionCode(acquire(store, 'b'))).toBe('LEASE_HELD');
        expect((await store.leases.renew(lease, 500)).token).toBe(lease.token);
      }),
    );

    it(
      'cannot be renewed after expiry, even while they are free',
      withStore(open, async ({ store, clock }) => {
        const lease = await acquire(store, 'a');
        await clock.advance(1_000);
        expect(await rejectionCode(store.leases.renew(lease, 1_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'cannot be renewed after another holder acquired them or after release',
      withStore(open, async ({ store, clock }) => {
        const taken = await acquire(store, 'a');
        await clock.advance(1_000);
        const released = await acquire(store, 'b');
        expect(await rejectionCode(store.leases.renew(taken, 1_000))).toBe('LEASE_LOST');
        await store.leases.release(released);
        expect(await rejectionCode(store.leases.renew(released, 1_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'are free after release, and the token keeps growing',
      withStore(open, async ({ store, clock }) => {
        const first = await acquire(store, 'a');
        await store.leases.release(first);
        const read = await store.leases.read(NAME);
        expect(read).toMatchObject({ holder: 'a', token: first.token, releasedAt: clock.now() });
        expect(read?.expiresAt).toBeLessThanOrEqual(clock.now());
        expect((await acquire(store, 'b')).token).toBe(first.token + 1);
      }),
    );

    it(
      'that are released after they have expired count as released when they expired',
      withStore(open, async ({ store, clock }) => {
        const { expiresAt, ...lease } = await acquire(store, 'a');
        await clock.advance(60_000);
        await store.leases.release({ ...lease, expiresAt });
        expect(await store.leases.read(NAME)).toMatchObject({ releasedAt: expiresAt });
      }),
    );

    it(
      'ignore a release by a former holder',
      withStore(open, async ({ store, clock }) => {
        const old = await acquire(store, 'a');
        await clock.advance(1_000);
        const current = await acquire(store, 'b');
        await store.leases.release(old);
        await store.leases.release({ ...current, holder: 'another holder' });
        await store.leases.release({ ...current, name: 'unknown' });
        expect(await store.leases.read(NAME)).toEqual(current);
        await store.leases.release(current);
        await store.leases.release(current);
      }),
    );

    it(
      'of different names are independent',
      withStore(open, async ({ store }) => {
        await acquire(store, 'a');
        const other = await store.leases.acquire({ name: 'other', holder: 'b', durationMs: 5 });
        expect(other.holder).toBe('b');
      }),
    );

    it(
      'go to exactly one of several concurrent callers',
      withStore(open, async ({ store, reopen }) => {
        const stores = [store, await reopen()];
        const all = Array.from({ length: 10 }, (_, index) =>
          acquire(stores[index % 2] ?? store, `h${index}`),
        );
        expect(await countOutcomes(all)).toEqual({
          resolved: 1,
          codes: Array.from({ length: 9 }, () => 'LEASE_HELD'),
        });
        await stores[1]?.close();
      }),
    );

    it(
      'do not change when the caller has cancelled',
      withStore(open, async ({ store }) => {
        const signal = aborted();
        const lease = await acquire(store, 'a');
        const calls = [
          () => store.leases.acquire({ name: NAME, holder: 'a', durationMs: 1 }, { signal }),
          () => store.leases.renew(lease, 1, { signal }),
          () => store.leases.read(NAME, { signal }),
        ];
        for (const call of calls) expect(await rejectionCode(call())).toBe('CANCELLED');
        expect(await store.leases.read(NAME)).toEqual(lease);
      }),
    );
  });

  fencingContract(open);
}

function fencingContract(open: OpenStore): void {
  describe('fenced writes', () => {
    it(
      'succeed while the lease is current',
      withStore(open, async ({ store, clock }) => {
        const fence = await acquire(store, 'a');
        const created = await store.pools.create('x', aPoolState(), { fence });
        await clock.advance(999);
        const replaced = await store.pools.replace(created, aPoolState({ pool: 'b' }), { fence });
        await store.pools.remove(replaced, { fence });
        expect(await store.pools.list()).toEqual([]);
      }),
    );

    it(
      'accept a copy of the lease from before its renewal',
      withStore(open, async ({ store, clock }) => {
        const fence = await acquire(store, 'a');
        await clock.advance(900);
        await store.leases.renew(fence, 1_000);
        await clock.advance(900);
        expect((await store.pools.create('x', aPoolState(), { fence })).key).toBe('x');
      }),
    );

    /** Each function makes the lease invalid and returns the lease to write with. */
    const losses: readonly [
      string,
      (fixture: {
        store: Store;
        fence: Lease;
        advance: (ms: number) => Promise<void>;
      }) => Promise<Lease>,
    ][] = [
      ['expired but still free', async ({ fence, advance }) => (await advance(1_000), fence)],
      [
        'acquired by another holder',
        async ({ store, fence, advance }) => {
          await advance(1_000);
          await acquire(store, 'b');
          return fence;
        },
      ],
      [
        'acquired by a successor with the same name',
        async ({ store, fence }) => {
          await acquire(store, 'a');
          return fence;
        },
      ],
      ['released', async ({ store, fence }) => (await store.leases.release(fence), fence)],
      ['invalid: a future token', async ({ fence }) => ({ ...fence, token: fence.token + 1 })],
      ['invalid: another holder', async ({ fence }) => ({ ...fence, holder: 'z' })],
      ['invalid: another name', async ({ fence }) => ({ ...fence, name: 'z' })],
      [
        'expired, with a forged expiry',
        async ({ fence, advance }) => {
          await advance(1_000);
          return { ...fence, expiresAt: fence.expiresAt + 1e9 };
        },
      ],
    ];

    it.each(losses)('change nothing once the lease is %s', (_name, lose) =>
      withStore(open, async ({ store, clock }) => {
        const seen = await store.pools.create('x', aPoolState());
        const held = await acquire(store, 'a');
        const fence = await lose({ store, fence: held, advance: (ms) => clock.advance(ms) });
        const before = await store.revision();
        const writes = [
          store.pools.create('y', aPoolState(), { fence }),
          store.pools.create('x', aPoolState(), { fence }),
          store.pools.replace(seen, aPoolState({ pool: 'b' }), { fence }),
          store.pools.remove(seen, { fence }),
        ];
        expect(await countOutcomes(writes)).toEqual({
          resolved: 0,
          codes: writes.map(() => 'LEASE_LOST'),
        });
        expect(await store.pools.list()).toEqual([seen]);
        expect(await store.revision()).toBe(before);
      })(),
    );
  });
}
