// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { AUTOSCALER } from '../../model/intent.ts';
import { Unauthorized } from '../../ports/errors.ts';
import type { DrainingNode } from '../context/options.ts';
import {
  aDrainTestFleet,
  eventsOf,
  evictions,
  protect,
  RESTORED,
  requestDrain,
  restoredNode,
} from '../testing/drain-test-fleet.ts';
import {
  journalReasonsIn,
  phasesIn,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('a drain of the autoscaler', () => {
  it('is checked with the pods of the Node, after the taint and before each eviction', async () => {
    const checks: DrainingNode[] = [];
    const order: string[] = [];
    const testFleet = await aDrainTestFleet({
      checkDrain: (node) => {
        order.push('check');
        checks.push(node);
        return Promise.resolve({ ok: true });
      },
    });
    testFleet.putPod({ name: 'web-0' });
    testFleet.cluster.onCall = ({ method }) => {
      if (['changeNode', 'evict'].includes(method)) order.push(method);
    };
    await requestDrain(testFleet, AUTOSCALER);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(order).toEqual(['changeNode', 'check', 'changeNode', 'check', 'evict']);
    const { id, nodeName } = testFleet;
    expect(checks[0]).toMatchObject({
      machine: id,
      pool: 'workers',
      node: { name: nodeName },
      pods: [{ name: 'web-0' }],
    });
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('is undone, without an eviction, when the check refuses it', async () => {
    const testFleet = await aDrainTestFleet({
      checkDrain: () => Promise.resolve({ ok: false, reason: 'default/web-0 fits nowhere else' }),
    });
    testFleet.putPod({ name: 'web-0' });
    await requestDrain(testFleet, AUTOSCALER);
    await testFleet.untilDrain('undone');
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
    expect(evictions(testFleet)).toEqual([]);
    expect((await testFleet.drain())?.undo).toEqual({
      cause: 'changed',
      message: 'default/web-0 fits nowhere else',
    });
    expect(eventsOf(testFleet)).toContain('Warning DrainUndone');
  });

  it('is undone when the place of a pod is taken while a budget blocks its eviction', async () => {
    let isFree = true;
    const testFleet = await aDrainTestFleet({
      checkDrain: () => Promise.resolve(isFree ? { ok: true } : { ok: false, reason: 'full' }),
    });
    protect(testFleet, testFleet.putPod({ name: 'web-0' }));
    await requestDrain(testFleet, AUTOSCALER);
    await testFleet.untilDrain('evicting');
    await runPasses(testFleet, 5);
    expect(await testFleet.drain()).toMatchObject({ state: 'evicting' });
    const before = evictions(testFleet).length;
    isFree = false;
    await testFleet.untilDrain('undone');
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
    expect(evictions(testFleet)).toHaveLength(before);
  });

  it('is undone where the autoscaler does not run', async () => {
    const testFleet = await aDrainTestFleet();
    testFleet.putPod();
    await requestDrain(testFleet, AUTOSCALER);
    await testFleet.untilDrain('undone');
    expect(await restoredNode(testFleet)).toEqual(RESTORED);
    expect(evictions(testFleet)).toEqual([]);
  });

  it('waits while the check fails with an error', async () => {
    let isReadable = false;
    const testFleet = await aDrainTestFleet({
      checkDrain: () =>
        isReadable
          ? Promise.resolve({ ok: true })
          : Promise.reject(new Unauthorized('PERMISSION_MISSING', 'cannot read pods')),
    });
    await requestDrain(testFleet, AUTOSCALER);
    await runPasses(testFleet, 10);
    expect(await testFleet.drain()).toMatchObject({ state: 'tainted' });
    isReadable = true;
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('is refused when its machine has no Node', async () => {
    const testFleet = await aDrainTestFleet({ checkDrain: () => Promise.resolve({ ok: true }) });
    testFleet.guests.behaviour = { neverRegisters: true };
    testFleet.cluster.state.removeNode(testFleet.nodeName);
    await requestDrain(testFleet, AUTOSCALER);
    await runPasses(testFleet, 3);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
    expect(await journalReasonsIn(testFleet.store)).toContain('DrainRefused');
  });

  it('is undone when its Node is gone', async () => {
    const testFleet = await aDrainTestFleet({ checkDrain: () => Promise.resolve({ ok: true }) });
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet, AUTOSCALER);
    await testFleet.untilDrain('evicting');
    testFleet.guests.behaviour = { neverRegisters: true };
    testFleet.cluster.state.removeNode(testFleet.nodeName);
    await testFleet.untilDrain('undone');
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
  });

  it('becomes that of a person who requests it too, and is not checked from then on', async () => {
    let isFree = true;
    const testFleet = await aDrainTestFleet({
      checkDrain: () => Promise.resolve(isFree ? { ok: true } : { ok: false, reason: 'full' }),
    });
    protect(testFleet, testFleet.putPod());
    await requestDrain(testFleet, AUTOSCALER);
    await testFleet.untilDrain('evicting');
    await requestDrain(testFleet);
    await requestDrain(testFleet, AUTOSCALER);
    isFree = false;
    testFleet.putPod({ name: 'late' });
    await runPasses(testFleet, 5);
    expect(await testFleet.drain()).toMatchObject({ state: 'evicting', requestedBy: 'cli' });
    await testFleet.fleet.remove([testFleet.id], REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });
});
