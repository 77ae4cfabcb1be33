// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { AcquiredLease, Cluster, ClusterLease } from '../cluster.ts';
import { type OpenCluster, withCluster } from './cluster-fixture.ts';
import { aborted, countOutcomes, rejectionCode } from './store-fixture.contract.ts';

const NAME = 'reconcile';

function acquire(cluster: Cluster, holder: string, durationMs = 60_000): Promise<AcquiredLease> {
  return cluster.acquireLease({ name: NAME, holder, durationMs });
}

export function clusterLeasesContract(open: OpenCluster): void {
  describe('cluster leases', () => {
    it(
      'are acquired immediately when they do not exist',
      withCluster(open, async ({ cluster, now }) => {
        const before = now();
        const lease = await acquire(cluster, 'a');
        expect(lease).toMatchObject({ name: NAME, holder: 'a' });
        expect(lease.expiresAt).toBeGreaterThanOrEqual(before + 60_000);
        expect(lease.expiresAt).toBeLessThanOrEqual(now() + 60_000);
        expect(lease.token).toBeGreaterThan(0);
      }),
    );

    it(
      'cannot be acquired while another holder renews them',
      withCluster(open, async ({ cluster, peer, advance }) => {
        const other = await peer();
        let lease: ClusterLease = await acquire(cluster, 'a');
        for (let renewal = 0; renewal < 5; renewal += 1) {
          await expect(acquire(other, 'b')).rejects.toMatchObject({
            code: 'LEASE_HELD',
            facts: { holder: 'a' },
          });
          await advance(45_000);
          lease = await cluster.renewLease(lease, 60_000);
        }
        expect(lease.token).toBe((await cluster.renewLease(lease, 60_000)).token);
      }),
    );

    it(
      'can be acquired immediately from a holder that is known to have ended, and from no other',
      withCluster(open, async ({ cluster, peer }) => {
        const first = await acquire(cluster, 'a');
        const other = await peer();
        const request = { name: NAME, holder: 'b', durationMs: 60_000 };
        const wrong = other.acquireLease({ ...request, ended: { holder: 'c', unsettledMs: 0 } });
        expect(await rejectionCode(wrong)).toBe('LEASE_HELD');
        const second = await other.acquireLease({
          ...request,
          ended: { holder: 'a', unsettledMs: 7 },
        });
        expect(second).toMatchObject({ holder: 'b', token: first.token + 1, unsettledMs: 7 });
        expect(await rejectionCode(cluster.renewLease(first, 60_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'can be acquired only after this process has seen them unchanged for their whole duration',
      withCluster(open, async ({ cluster, peer, advance }) => {
        const first = await acquire(cluster, 'a');
        await advance(3_600_000);
        const other = await peer();
        // The record says that it expired long ago, but this process cannot trust the other clock.
        expect(await rejectionCode(acquire(other, 'b'))).toBe('LEASE_HELD');
        await advance(45_000);
        expect(await rejectionCode(acquire(other, 'b'))).toBe('LEASE_HELD');
        await advance(15_000);
        const second = await acquire(other, 'b');
        expect(second).toMatchObject({ holder: 'b', token: first.token + 1 });
        expect(await rejectionCode(cluster.renewLease(first, 60_000))).toBe('LEASE_LOST');
        expect(await rejectionCode(acquire(cluster, 'a'))).toBe('LEASE_HELD');
      }),
    );

    it(
      'cannot be renewed after expiry, even while they are free',
      withCluster(open, async ({ cluster, advance }) => {
        const lease = await acquire(cluster, 'a');
        await advance(60_000);
        expect(await rejectionCode(cluster.renewLease(lease, 60_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'pass immediately to the same holder name and end its earlier lease',
      withCluster(open, async ({ cluster, peer }) => {
        const first = await acquire(cluster, 'a');
        const second = await acquire(await peer(), 'a');
        expect(second.token).toBe(first.token + 1);
        expect(await rejectionCode(cluster.renewLease(first, 60_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'are free after release, and the token keeps growing',
      withCluster(open, async ({ cluster, peer }) => {
        const other = await peer();
        const first = await acquire(cluster, 'a');
        expect(await rejectionCode(acquire(other, 'b'))).toBe('LEASE_HELD');
        await cluster.releaseLease(first);
        expect(await rejectionCode(cluster.renewLease(first, 60_000))).toBe('LEASE_LOST');
        const second = await acquire(other, 'b');
        expect(second.token).toBeGreaterThan(first.token);
        await cluster.releaseLease(first);
        expect(await rejectionCode(acquire(cluster, 'a'))).toBe('LEASE_HELD');
      }),
    );

    it(
      'report how long requests of the previous holder may still take effect',
      withCluster(open, async ({ cluster, peer, advance }) => {
        const other = await peer();
        const first = await acquire(cluster, 'a');
        expect(first.unsettledMs).toBe(0);
        await cluster.releaseLease(await cluster.renewLease(first, 60_000));
        const second = await acquire(other, 'b');
        expect(second.unsettledMs).toBe(0);
        await other.releaseLease(second, { unsettledMs: 29_001 });
        const third = await acquire(cluster, 'a');
        expect(third.unsettledMs).toBe(30_000);
        expect(await rejectionCode(acquire(other, 'b'))).toBe('LEASE_HELD');
        await advance(60_000);
        expect((await acquire(other, 'b')).unsettledMs).toBeUndefined();
      }),
    );

    it(
      'stay held for their duration when the object is deleted under an observed holder',
      withCluster(open, async ({ cluster, peer, advance, removeLease }) => {
        const other = await peer();
        const lease = await acquire(cluster, 'a');
        expect(await rejectionCode(acquire(other, 'b'))).toBe('LEASE_HELD');
        await advance(45_000);
        const renewed = await cluster.renewLease(lease, 60_000);
        await removeLease(NAME);
        for (const ms of [0, 45_000]) {
          await advance(ms);
          await expect(acquire(other, 'b')).rejects.toMatchObject({
            code: 'LEASE_HELD',
            facts: { holder: 'a' },
          });
        }
        expect(await rejectionCode(cluster.renewLease(renewed, 60_000))).toBe('LEASE_LOST');
        await advance(15_000);
        expect(await acquire(other, 'b')).toMatchObject({ holder: 'b', unsettledMs: undefined });
        await removeLease(NAME);
        expect((await acquire(other, 'b')).unsettledMs).toBe(0);
      }),
    );

    it(
      'go to exactly one of several concurrent callers',
      withCluster(open, async ({ cluster, peer }) => {
        const other = await peer();
        const all = Array.from({ length: 8 }, (_, index) =>
          acquire(index % 2 === 0 ? cluster : other, `h${index}`),
        );
        expect(await countOutcomes(all)).toEqual({
          resolved: 1,
          codes: Array.from({ length: 7 }, () => 'LEASE_HELD'),
        });
      }),
    );

    it(
      'of different names are independent',
      withCluster(open, async ({ cluster }) => {
        await acquire(cluster, 'a');
        const request = { name: 'other', holder: 'b', durationMs: 1_000 };
        expect((await cluster.acquireLease(request)).holder).toBe('b');
      }),
    );

    it(
      'stay valid until expiry while the API server is unreachable',
      withCluster(open, async ({ cluster, advance, ...fixture }) => {
        const lease = await acquire(cluster, 'a');
        fixture.disconnect();
        expect(await rejectionCode(cluster.renewLease(lease, 60_000))).toBe(
          'KUBERNETES_UNREACHABLE',
        );
        fixture.reconnect();
        await advance(5_000);
        const renewed = await cluster.renewLease(lease, 60_000);
        expect(renewed.actUntil).toBeGreaterThanOrEqual(lease.actUntil + 5_000);
        fixture.disconnect();
        await advance(60_000);
        expect(await rejectionCode(cluster.renewLease(renewed, 60_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'do not change when the caller has cancelled',
      withCluster(open, async ({ cluster, peer }) => {
        const options = { signal: aborted() };
        const request = { name: NAME, holder: 'a', durationMs: 1_000 };
        expect(await rejectionCode(cluster.acquireLease(request, options))).toBe('CANCELLED');
        expect((await acquire(await peer(), 'b')).holder).toBe('b');
      }),
    );
  });
}
