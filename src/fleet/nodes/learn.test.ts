// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  aJoiningTestFleet,
  aReadyMachine,
  type JoiningTestFleet,
} from '../testing/joining-test-fleet.ts';
import { REASON, runPasses, untilAtRest } from '../testing/test-fleet.ts';

const KNOWN = { cpu: '2', memory: '4Gi', pods: '110' };

/** What is known after a second machine has joined, whose Node reports these resources. */
async function learnFrom(testFleet: JoiningTestFleet, allocatable: Record<string, string>) {
  const { cluster, guests, fleet, store } = testFleet;
  const { placement, size } = await aReadyMachine(testFleet);
  const learned = async () => {
    const state = (await store.pools.get('workers'))?.value;
    return state?.allocatable[`${size.cpu}x${size.memoryBytes}x${size.diskBytes}`];
  };
  const before = await learned();
  guests.behaviour = { neverReady: true };
  await fleet.scaleTo('workers', 2, REASON);
  await runPasses(testFleet, 25);
  for (const { name } of cluster.state.nodes.values()) {
    if (name !== placement.name) cluster.state.updateNode(name, { allocatable });
  }
  expect(cluster.state.nodes.size).toBe(2);
  guests.behaviour = {};
  await untilAtRest(fleet, testFleet);
  return { before, after: await learned() };
}

describe('learnAllocatable', () => {
  it('records how much of a machine of that size pods can use', async () => {
    const testFleet = aJoiningTestFleet();
    const { size } = await aReadyMachine(testFleet);
    const state = await testFleet.store.pools.get('workers');
    const key = `${size.cpu}x${size.memoryBytes}x${size.diskBytes}`;
    expect(state?.value.allocatable[key]).toMatchObject({
      cpuMilli: 2_000,
      memoryBytes: 4 * 2 ** 30,
      pods: 110,
    });
  });

  it('writes nothing when the next Node of that size reports the same', async () => {
    const { before, after } = await learnFrom(aJoiningTestFleet(), KNOWN);
    expect(after).toEqual(before);
  });

  it.each([
    ['cpu', { ...KNOWN, cpu: '1900m' }, { cpuMilli: 1_900 }],
    ['memory', { ...KNOWN, memory: '3Gi' }, { memoryBytes: 3 * 2 ** 30 }],
    ['storage', { ...KNOWN, 'ephemeral-storage': '9Gi' }, { ephemeralStorageBytes: 9 * 2 ** 30 }],
    ['pods', { ...KNOWN, pods: '50' }, { pods: 50 }],
  ])(
    'learns another amount of %s from the next Node of that size',
    async (...[, node, learned]) => {
      const { before, after } = await learnFrom(aJoiningTestFleet(), node);
      expect(after).toMatchObject(learned);
      expect(after?.learnedAt).toBeGreaterThan(before?.learnedAt ?? 0);
    },
  );

  it.each([
    ['no memory', { ...KNOWN, memory: '0' }],
    ['resources that cannot be read', { ...KNOWN, memory: 'much' }],
  ])('learns nothing from a Node that reports %s', async (_what, node) => {
    const { before, after } = await learnFrom(aJoiningTestFleet(), node);
    expect(after).toEqual(before);
  });
});
