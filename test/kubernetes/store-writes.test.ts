// SPDX-License-Identifier: Apache-2.0
// How many writes the objects of one machine cost over its life, with the engine on the Kubernetes store.
import { describe, expect, it, onTestFinished } from 'vitest';
import { aWorkerPool, TestSite } from '../../src/autoscaler/testing/test-site.ts';
import { aJoiningPool, aJoiningTestFleet } from '../../src/fleet/testing/joining-test-fleet.ts';
import { STATIC_NETWORK, someSettings } from '../../src/fleet/testing/settings.ts';
import { aFleet, REASON } from '../../src/fleet/testing/test-fleet.ts';
import { RECONCILE_LEASE } from '../../src/model/lease.ts';
import type { Phase } from '../../src/model/machine.ts';
import { StoreBench } from './store-bench.ts';

const HOUR_MS = 3_600_000;

const isWrite = (line: string) => /^(POST|PUT|PATCH|DELETE) .*pvescaler\.dev/.test(line);

interface Life {
  readonly hasStaticAddress: boolean;
  readonly isDrained: boolean;
  readonly machines: number;
  readonly bootMs?: number;
}

/** Creates machines, removes them, and waits until their records are removed too. Returns the writes. */
async function live(life: Life): Promise<readonly string[]> {
  const { hasStaticAddress, isDrained, machines, bootMs } = life;
  const pool = aJoiningPool(hasStaticAddress ? { network: STATIC_NETWORK } : {});
  const settings = someSettings([pool]);
  const parts = aJoiningTestFleet(settings);
  const { clock, guests } = parts;
  if (bootMs !== undefined) guests.behaviour = { bootMs };
  const bench = new StoreBench(clock);
  onTestFinished(() => bench.cleanup());
  const store = await bench.open();
  const fleet = aFleet({ ...parts, store, settings, seed: 1 });
  const held = { name: RECONCILE_LEASE, holder: 'test', durationMs: HOUR_MS };
  let lease = await store.leases.acquire(held);
  const passes = async (count: number, stepMs = 1_000) => {
    for (let pass = 0; pass < count; pass += 1) {
      guests.settle();
      lease = await store.leases.renew(lease, HOUR_MS);
      await fleet.reconcileOnce(lease);
      await clock.advance(stepMs);
    }
  };
  const untilAll = async (phase: Phase) => {
    for (let pass = 0; pass < 400; pass += 1) {
      const found = await store.machines.list();
      if (found.length === machines && found.every(({ value }) => value.phase === phase)) return;
      await passes(1);
    }
    expect.unreachable(`not all machines are ${phase}`);
  };
  await fleet.scaleTo('workers', machines, REASON);
  await untilAll('ready');
  // Longer than a write is deferred.
  await passes(10, 60_000);
  const ids = (await store.machines.list()).map(({ value }) => value.id);
  if (isDrained) await fleet.drain({ ...REASON, machines: ids.map((id) => ({ id })) });
  else await fleet.scaleTo('workers', 0, REASON);
  await untilAll('gone');
  await passes(16, 5 * 60_000);
  expect(await store.machines.list()).toEqual([]);
  const kinds = ['machines', 'machinerequests'];
  for (const kind of kinds) {
    expect(bench.sim.list('pvescaler.dev/v1alpha1', `proxmox${kind}`)).toEqual([]);
  }
  const before = bench.sim.requests.length;
  await passes(12, 5 * 60_000);
  expect(bench.sim.requests.slice(before).filter(isWrite)).toEqual([]);
  return bench.sim.requests.filter((line) => isWrite(line) && !line.includes('proxmoxpoolstates'));
}

describe('the writes of one machine over its life', () => {
  it.each([
    { hasStaticAddress: false, isDrained: false, alone: 11, inGroup: 8 },
    { hasStaticAddress: false, isDrained: true, alone: 12, inGroup: 9 },
    { hasStaticAddress: true, isDrained: false, alone: 11, inGroup: 7.8 },
    { hasStaticAddress: true, isDrained: true, alone: 12, inGroup: 8.8 },
  ])(
    'are $alone alone and $inGroup in a group of five, static address: $hasStaticAddress, drain: $isDrained',
    async ({ alone, inGroup, ...life }) => {
      const single = await live({ ...life, machines: 1 });
      expect(single.length, single.join('\n')).toBe(alone);
      // A creation of almost five minutes needs no more.
      const slow = await live({ ...life, machines: 1, bootMs: 4.5 * 60_000 });
      expect(slow.length, slow.join('\n')).toBe(alone);
      const group = await live({ ...life, machines: 5 });
      expect(group.length / 5, group.join('\n')).toBe(inGroup);
    },
  );
});

describe('the writes of the autoscaler', () => {
  async function aSite(min: number) {
    const pool = aWorkerPool();
    const site = new TestSite([{ ...pool, limits: { ...pool.limits, min } }]);
    const bench = new StoreBench(site.clock);
    const { fleet } = site.start('a', {}, await bench.open());
    onTestFinished(async () => {
      site.stop();
      await bench.cleanup();
    });
    const phases = () => fleet.view.machines.all().map(({ phase }) => phase);
    const writes = () => bench.sim.requests.filter(isWrite);
    return { site, phases, writes };
  }

  it('to the state of a pool are six from the first pending pod until its machine is removed', async () => {
    const { site, phases, writes } = await aSite(0);
    site.addPod('web');
    await site.advance(10 * 60);
    expect(phases()).toEqual(['ready']);
    site.deletePod('web');
    await site.advance(20 * 60);
    expect(phases()).toEqual(['gone']);
    const ofPool = writes().filter((line) => line.includes('proxmoxpoolstates'));
    expect(ofPool, ofPool.join('\n')).toHaveLength(6);
  });

  it('are none at rest, also while it keeps an idle machine', async () => {
    const { site, phases, writes } = await aSite(1);
    await site.advance(30 * 60);
    expect(phases()).toEqual(['ready']);
    const before = writes();
    await site.advance(60 * 60);
    expect(writes()).toEqual(before);
  });
});
