// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Cluster, ClusterLease, TakenLease } from '../cluster.ts';
import { type OpenCluster, onCluster } from './cluster-bench.ts';
import { aborted, codeOf, tally } from './store-harness.contract.ts';

const NAME = 'reconcile';

function take(cluster: Cluster, holder: string, durationMs = 60_000): Promise<TakenLease> {
  return cluster.acquireLease({ name: NAME, holder, durationMs });
}

export function clusterLeasesContract(open: OpenCluster): void {
  describe('leases', () => {
    it(
      'give a new one at once',
      onCluster(open, async ({ cluster, now }) => {
        const before = now();
        const lease = await take(cluster, 'a');
        expect(lease).toMatchObject({ name: NAME, holder: 'a' });
        expect(lease.expiresAt).toBeGreaterThanOrEqual(before + 60_000);
        expect(lease.expiresAt).toBeLessThanOrEqual(now() + 60_000);
        expect(lease.token).toBeGreaterThan(0);
      }),
    );

    it(
      "refuse while another's is renewed, however long that takes",
      onCluster(open, async ({ cluster, peer, pass }) => {
        const other = await peer();
        let lease: ClusterLease = await take(cluster, 'a');
        for (let turn = 0; turn < 5; turn += 1) {
          await expect(take(other, 'b')).rejects.toMatchObject({
            code: 'LEASE_HELD',
            facts: { holder: 'a' },
          });
          await pass(45_000);
          lease = await cluster.renewLease(lease, 60_000);
        }
        expect(lease.token).toBe((await cluster.renewLease(lease, 60_000)).token);
      }),
    );

    it(
      'pass on only when seen unchanged for their whole duration by the one who asks',
      onCluster(open, async ({ cluster, peer, pass }) => {
        const first = await take(cluster, 'a');
        await pass(3_600_000);
        const other = await peer();
        // Expired for long, says its record; but this process cannot know whose clock was right.
        expect(await codeOf(take(other, 'b'))).toBe('LEASE_HELD');
        await pass(45_000);
        expect(await codeOf(take(other, 'b'))).toBe('LEASE_HELD');
        await pass(15_000);
        const second = await take(other, 'b');
        expect(second).toMatchObject({ holder: 'b', token: first.token + 1 });
        expect(await codeOf(cluster.renewLease(first, 60_000))).toBe('LEASE_LOST');
        expect(await codeOf(take(cluster, 'a'))).toBe('LEASE_HELD');
      }),
    );

    it(
      'are not renewed once expired, though nobody took them',
      onCluster(open, async ({ cluster, pass }) => {
        const lease = await take(cluster, 'a');
        await pass(60_000);
        expect(await codeOf(cluster.renewLease(lease, 60_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'pass to the same name at once, and end the earlier one',
      onCluster(open, async ({ cluster, peer }) => {
        const first = await take(cluster, 'a');
        const second = await take(await peer(), 'a');
        expect(second.token).toBe(first.token + 1);
        expect(await codeOf(cluster.renewLease(first, 60_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'are free after release, and the token grows on',
      onCluster(open, async ({ cluster, peer }) => {
        const other = await peer();
        const first = await take(cluster, 'a');
        expect(await codeOf(take(other, 'b'))).toBe('LEASE_HELD');
        await cluster.releaseLease(first);
        expect(await codeOf(cluster.renewLease(first, 60_000))).toBe('LEASE_LOST');
        const second = await take(other, 'b');
        expect(second.token).toBeGreaterThan(first.token);
        await cluster.releaseLease(first);
        expect(await codeOf(take(cluster, 'a'))).toBe('LEASE_HELD');
      }),
    );

    it(
      'say what is known of the requests of whoever had them',
      onCluster(open, async ({ cluster, peer, pass }) => {
        const other = await peer();
        const first = await take(cluster, 'a');
        expect(first.unsettledMs).toBe(0);
        await cluster.releaseLease(await cluster.renewLease(first, 60_000));
        const second = await take(other, 'b');
        expect(second.unsettledMs).toBe(0);
        await other.releaseLease(second, { unsettledMs: 29_001 });
        const third = await take(cluster, 'a');
        expect(third.unsettledMs).toBe(30_000);
        expect(await codeOf(take(other, 'b'))).toBe('LEASE_HELD');
        await pass(60_000);
        expect((await take(other, 'b')).unsettledMs).toBeUndefined();
      }),
    );

    it(
      'are waited for when they are removed from under a holder that was seen',
      onCluster(open, async ({ cluster, peer, pass, removeLease }) => {
        const other = await peer();
        const lease = await take(cluster, 'a');
        expect(await codeOf(take(other, 'b'))).toBe('LEASE_HELD');
        await pass(45_000);
        const renewed = await cluster.renewLease(lease, 60_000);
        await removeLease(NAME);
        for (const ms of [0, 45_000]) {
          await pass(ms);
          await expect(take(other, 'b')).rejects.toMatchObject({
            code: 'LEASE_HELD',
            facts: { holder: 'a' },
          });
        }
        expect(await codeOf(cluster.renewLease(renewed, 60_000))).toBe('LEASE_LOST');
        await pass(15_000);
        expect(await take(other, 'b')).toMatchObject({ holder: 'b', unsettledMs: undefined });
        await removeLease(NAME);
        expect((await take(other, 'b')).unsettledMs).toBe(0);
      }),
    );

    it(
      'go to exactly one of many',
      onCluster(open, async ({ cluster, peer }) => {
        const other = await peer();
        const all = Array.from({ length: 8 }, (_, index) =>
          take(index % 2 === 0 ? cluster : other, `h${index}`),
        );
        expect(await tally(all)).toEqual({
          won: 1,
          codes: Array.from({ length: 7 }, () => 'LEASE_HELD'),
        });
      }),
    );

    it(
      'keep names apart',
      onCluster(open, async ({ cluster }) => {
        await take(cluster, 'a');
        const request = { name: 'other', holder: 'b', durationMs: 1_000 };
        expect((await cluster.acquireLease(request)).holder).toBe('b');
      }),
    );

    it(
      'stay as they are while the API server is away, until they expire',
      onCluster(open, async ({ cluster, pass, ...bench }) => {
        const lease = await take(cluster, 'a');
        bench.cutOff();
        expect(await codeOf(cluster.renewLease(lease, 60_000))).toBe('KUBERNETES_UNREACHABLE');
        bench.reconnect();
        await pass(5_000);
        const renewed = await cluster.renewLease(lease, 60_000);
        expect(renewed.actUntil).toBeGreaterThanOrEqual(lease.actUntil + 5_000);
        bench.cutOff();
        await pass(60_000);
        expect(await codeOf(cluster.renewLease(renewed, 60_000))).toBe('LEASE_LOST');
      }),
    );

    it(
      'change nothing for a caller that gave up',
      onCluster(open, async ({ cluster, peer }) => {
        const options = { signal: aborted() };
        const request = { name: NAME, holder: 'a', durationMs: 1_000 };
        expect(await codeOf(cluster.acquireLease(request, options))).toBe('CANCELLED');
        expect((await take(await peer(), 'b')).holder).toBe('b');
      }),
    );
  });
}
