// SPDX-License-Identifier: Apache-2.0
// How many writes the records of one machine cost over its life, with the engine on the Kubernetes store. They are at most
// twelve, the state of its pool included.
import { describe, expect, it, onTestFinished } from 'vitest';
import { aWorkerPool, TestSite } from '../../src/autoscaler/testing/test-site.ts';
import type { PoolSettings } from '../../src/fleet/index.ts';
import { aJoiningPool, aJoiningTestFleet } from '../../src/fleet/testing/joining-test-fleet.ts';
import { STATIC_NETWORK, someSettings } from '../../src/fleet/testing/settings.ts';
import { aFleet, REASON } from '../../src/fleet/testing/test-fleet.ts';
import { RECONCILE_LEASE } from '../../src/model/lease.ts';
import type { Phase } from '../../src/model/machine.ts';
import { NO_RESOURCES } from '../../src/model/resources.ts';
import { isObjectWrite, StoreBench } from './store-bench.ts';

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

interface PoolChanges {
  readonly limits?: Partial<PoolSettings['limits']>;
  readonly scaleDown?: Partial<PoolSettings['scaleDown']>;
}

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
  expect(bench.sim.requests.slice(before).filter(isObjectWrite)).toEqual([]);
  return bench.sim.requests.filter(isObjectWrite);
}

describe('the writes of one machine over its life', () => {
  it.each([
    { hasStaticAddress: false, isDrained: false, alone: 11, inGroup: 7.2 },
    { hasStaticAddress: false, isDrained: true, alone: 12, inGroup: 8.2 },
    { hasStaticAddress: true, isDrained: false, alone: 11, inGroup: 7 },
    { hasStaticAddress: true, isDrained: true, alone: 12, inGroup: 8 },
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

describe('in mode standalone', () => {
  async function aSite({ limits, scaleDown }: PoolChanges = {}) {
    const pool = aWorkerPool();
    const site = new TestSite([
      {
        ...pool,
        limits: { ...pool.limits, ...limits },
        scaleDown: { ...pool.scaleDown, ...scaleDown },
      },
    ]);
    const bench = new StoreBench(site.clock);
    const { fleet } = site.start('a', {}, await bench.open());
    onTestFinished(async () => {
      site.stop();
      await bench.cleanup();
    });
    const phases = () => fleet.view.machines.all().map(({ phase }) => phase);
    const writes = () => bench.sim.requests.filter(isObjectWrite);
    return { site, phases, writes };
  }

  it.each([
    { title: 'of a short life', runMinutes: 3, unneededMinutes: 10, pods: 1, expected: 9 },
    { title: 'of a long life', runMinutes: 300, unneededMinutes: 10, pods: 1, expected: 10 },
    {
      title: 'that is kept for an hour',
      runMinutes: 10,
      unneededMinutes: 60,
      pods: 1,
      expected: 10,
    },
    { title: 'of a group of five', runMinutes: 10, unneededMinutes: 10, pods: 5, expected: 7.8 },
  ])('the writes of one machine $title are $expected', async ({ expected, pods, ...times }) => {
    const { runMinutes, unneededMinutes } = times;
    const unneededTimeMs = unneededMinutes * MINUTE_MS;
    const { site, phases, writes } = await aSite({
      scaleDown: { unneededTimeMs, maxConcurrent: 5 },
    });
    const names = Array.from({ length: pods }, (_, index) => `web-${index}`);
    // More than half of a machine each.
    const requests = { ...NO_RESOURCES, cpuMilli: 1_500, pods: 1 };
    for (const name of names) site.addPod(name, { requests, held: requests });
    await site.advance(runMinutes * 60);
    expect(phases()).toEqual(names.map(() => 'ready'));
    for (const name of names) site.deletePod(name);
    await site.advance((unneededMinutes + 10) * 60);
    expect(phases()).toEqual(names.map(() => 'gone'));
    // Until their records are removed too.
    await site.advance(90 * 60);
    expect(phases()).toEqual([]);
    expect(writes().length / pods, writes().join('\n')).toBe(expected);
  });

  it('there are none at rest, also while an idle machine is kept', async () => {
    const { site, phases, writes } = await aSite({ limits: { min: 1 } });
    await site.advance(30 * 60);
    expect(phases()).toEqual(['ready']);
    const before = writes();
    await site.advance(60 * 60);
    expect(writes()).toEqual(before);
  });
});
