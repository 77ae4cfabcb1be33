// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Lease } from '../../model/lease.ts';
import { aPoolState } from '../fakes/sample-records.ts';
import type { Store } from '../store.ts';
import { aborted, codeOf, type OpenStore, onStore, tally } from './store-harness.contract.ts';

const NAME = 'reconcile';

function take(store: Store, holder: string, durationMs = 1_000): Promise<Lease> {
  return store.leases.acquire({ name: NAME, holder, durationMs });
}

export function leasesContract(open: OpenStore): void {
  describe('leases', () => {
    it(
      'reads undefined before the first',
      onStore(open, async ({ store }) => {
        expect(await store.leases.read(NAME)).toBeUndefined();
      }),
    );

    it(
      'gives a free one, with an expiry on the clock',
      onStore(open, async ({ store, clock }) => {
        const lease = await take(store, 'a');
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
      "refuses while another's is valid, naming holder and expiry",
      onStore(open, async ({ store, clock }) => {
        const lease = await take(store, 'a');
        await clock.advance(999);
        await expect(take(store, 'b')).rejects.toMatchObject({
          code: 'LEASE_HELD',
          facts: { holder: 'a', expiresAt: lease.expiresAt },
        });
        expect(await store.leases.read(NAME)).toEqual(lease);
      }),
    );

    it(
      'does not outlive a wall clock that was years ahead and is set right',
      onStore(open, async ({ store, clock }) => {
        const right = clock.now();
        clock.setWallClock(right + 50 * 365 * 24 * 3_600_000);
        const early = await take(store, 'a');
        clock.setWallClock(right);
        expect(await codeOf(store.leases.renew(early, 1_000))).toBe('LEASE_LOST');
        const taken = await take(store, 'b');
        expect(taken.token).toBe(early.token + 1);
        expect(await codeOf(take(store, 'a'))).toBe('LEASE_HELD');
      }),
    );

    it(
      'lasts an hour at most, whatever is asked for',
      onStore(open, async ({ store, clock }) => {
        const lease = await take(store, 'a', 10 * 3_600_000);
        expect(lease.expiresAt).toBe(clock.now() + 3_600_000);
        expect(await store.leases.renew(lease, 10 * 3_600_000)).toEqual(lease);
        expect(await codeOf(take(store, 'b'))).toBe('LEASE_HELD');
      }),
    );

    it(
      'is free at the instant of its expiry, and the token grows by one',
      onStore(open, async ({ store, clock }) => {
        const first = await take(store, 'a');
        await clock.advance(1_000);
        expect(await store.leases.read(NAME)).toEqual(first);
        const second = await take(store, 'b');
        expect(second).toMatchObject({ holder: 'b', token: first.token + 1 });
        expect(await codeOf(take(store, 'a'))).toBe('LEASE_HELD');
      }),
    );

    it(
      'passes to the same name at once, and ends the earlier one',
      onStore(open, async ({ store }) => {
        const first = await take(store, 'a');
        const second = await take(store, 'a');
        expect(second.token).toBe(first.token + 1);
        expect(await codeOf(store.leases.renew(first, 1_000))).toBe('LEASE_LOST');
        expect(await codeOf(store.pools.create('x', aPoolState(), { fence: first }))).toBe(
          'LEASE_LOST',
        );
      }),
    );

    it(
      'renews from now with the same token',
      onStore(open, async ({ store, clock }) => {
        const lease = await take(store, 'a');
        await clock.advance(600);
        const renewed = await store.leases.renew(lease, 500);
        expect(renewed).toEqual({ ...lease, expiresAt: clock.now() + 500 });
        await clock.advance(499);
        expect(await codeOf(take(store, 'b'))).toBe('LEASE_HELD');
        expect((await store.leases.renew(lease, 500)).token).toBe(lease.token);
      }),
    );

    it(
      'does not renew an expired one, though nobody took it',
      onStore(open, async ({ store, clock }) => {
        const lease = await take(store, 'a');
        await clock.advance(1_000);
        expect(await codeOf(store.leases.renew(lease, 1_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'does not renew one that was taken or released',
      onStore(open, async ({ store, clock }) => {
        const taken = await take(store, 'a');
        await clock.advance(1_000);
        const released = await take(store, 'b');
        expect(await codeOf(store.leases.renew(taken, 1_000))).toBe('LEASE_LOST');
        await store.leases.release(released);
        expect(await codeOf(store.leases.renew(released, 1_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'is free after release, and the token grows on',
      onStore(open, async ({ store, clock }) => {
        const first = await take(store, 'a');
        await store.leases.release(first);
        const read = await store.leases.read(NAME);
        expect(read).toMatchObject({ holder: 'a', token: first.token });
        expect(read?.expiresAt).toBeLessThanOrEqual(clock.now());
        expect((await take(store, 'b')).token).toBe(first.token + 1);
      }),
    );

    it(
      'ignores the release of one that is no longer theirs',
      onStore(open, async ({ store, clock }) => {
        const old = await take(store, 'a');
        await clock.advance(1_000);
        const current = await take(store, 'b');
        await store.leases.release(old);
        await store.leases.release({ ...current, holder: 'somebody else' });
        await store.leases.release({ ...current, name: 'never heard of' });
        expect(await store.leases.read(NAME)).toEqual(current);
        await store.leases.release(current);
        await store.leases.release(current);
      }),
    );

    it(
      'keeps names apart',
      onStore(open, async ({ store }) => {
        await take(store, 'a');
        const other = await store.leases.acquire({ name: 'other', holder: 'b', durationMs: 5 });
        expect(other.holder).toBe('b');
      }),
    );

    it(
      'goes to exactly one of many',
      onStore(open, async ({ store, reopen }) => {
        const stores = [store, await reopen()];
        const all = Array.from({ length: 10 }, (_, index) =>
          take(stores[index % 2] ?? store, `h${index}`),
        );
        expect(await tally(all)).toEqual({
          won: 1,
          codes: Array.from({ length: 9 }, () => 'LEASE_HELD'),
        });
        await stores[1]?.close();
      }),
    );

    it(
      'changes nothing for a caller that gave up',
      onStore(open, async ({ store }) => {
        const signal = aborted();
        const lease = await take(store, 'a');
        const calls = [
          () => store.leases.acquire({ name: NAME, holder: 'a', durationMs: 1 }, { signal }),
          () => store.leases.renew(lease, 1, { signal }),
          () => store.leases.read(NAME, { signal }),
        ];
        for (const call of calls) expect(await codeOf(call())).toBe('CANCELLED');
        expect(await store.leases.read(NAME)).toEqual(lease);
      }),
    );
  });

  fencingContract(open);
}

function fencingContract(open: OpenStore): void {
  describe('fenced writes', () => {
    it(
      'happen while the lease is current',
      onStore(open, async ({ store, clock }) => {
        const fence = await take(store, 'a');
        const created = await store.pools.create('x', aPoolState(), { fence });
        await clock.advance(999);
        const replaced = await store.pools.replace(created, aPoolState({ pool: 'b' }), { fence });
        await store.pools.remove(replaced, { fence });
        expect(await store.pools.list()).toEqual([]);
      }),
    );

    it(
      'accept a copy of the lease from before its renewal',
      onStore(open, async ({ store, clock }) => {
        const fence = await take(store, 'a');
        await clock.advance(900);
        await store.leases.renew(fence, 1_000);
        await clock.advance(900);
        expect((await store.pools.create('x', aPoolState(), { fence })).key).toBe('x');
      }),
    );

    /** Ways to lose a lease, each leaving the old one behind. */
    const losses: readonly [
      string,
      (scene: {
        store: Store;
        fence: Lease;
        pass: (ms: number) => Promise<void>;
      }) => Promise<Lease>,
    ][] = [
      ['expired, though nobody took it', async ({ fence, pass }) => (await pass(1_000), fence)],
      [
        'taken by another',
        async ({ store, fence, pass }) => {
          await pass(1_000);
          await take(store, 'b');
          return fence;
        },
      ],
      [
        'taken by a successor of the same name',
        async ({ store, fence }) => {
          await take(store, 'a');
          return fence;
        },
      ],
      ['released', async ({ store, fence }) => (await store.leases.release(fence), fence)],
      [
        'never given: a token of the future',
        async ({ fence }) => ({ ...fence, token: fence.token + 1 }),
      ],
      ['never given: another holder', async ({ fence }) => ({ ...fence, holder: 'z' })],
      ['never given: another name', async ({ fence }) => ({ ...fence, name: 'z' })],
      [
        'expired, with an expiry made up',
        async ({ fence, pass }) => {
          await pass(1_000);
          return { ...fence, expiresAt: fence.expiresAt + 1e9 };
        },
      ],
    ];

    it.each(losses)('change nothing once the lease is %s', (_name, lose) =>
      onStore(open, async ({ store, clock }) => {
        const seen = await store.pools.create('x', aPoolState());
        const held = await take(store, 'a');
        const fence = await lose({ store, fence: held, pass: (ms) => clock.advance(ms) });
        const before = await store.revision();
        const writes = [
          store.pools.create('y', aPoolState(), { fence }),
          store.pools.create('x', aPoolState(), { fence }),
          store.pools.replace(seen, aPoolState({ pool: 'b' }), { fence }),
          store.pools.remove(seen, { fence }),
        ];
        expect(await tally(writes)).toEqual({ won: 0, codes: writes.map(() => 'LEASE_LOST') });
        expect(await store.pools.list()).toEqual([seen]);
        expect(await store.revision()).toBe(before);
      })(),
    );
  });
}
