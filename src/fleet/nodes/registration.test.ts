// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { aJoiningPool, aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { someSettings } from '../testing/settings.ts';
import { REASON, untilAtRest } from '../testing/test-fleet.ts';

const GIB = 2 ** 30;

describe('the instance-type label of a Node', () => {
  it.each([
    [
      'the name of the machine size',
      { cpu: 4, memoryBytes: 8 * GIB, diskBytes: 80 * GIB },
      'large',
    ],
    ['the name of the pool size by default', undefined, 'small'],
    [
      'absent for a size without a name',
      { cpu: 3, memoryBytes: 8 * GIB, diskBytes: 80 * GIB },
      undefined,
    ],
  ])('is %s', async (_what, size, instanceType) => {
    const small = aJoiningPool().size;
    const instanceTypes = [
      { name: 'small', ...small },
      { name: 'large', cpu: 4, memoryBytes: 8 * GIB, diskBytes: 80 * GIB },
    ];
    const testFleet = aJoiningTestFleet(someSettings([aJoiningPool({ instanceTypes })]));
    await testFleet.fleet.scaleTo('workers', 1, size === undefined ? REASON : { ...REASON, size });
    await untilAtRest(testFleet.fleet, testFleet);
    const [node] = testFleet.cluster.state.nodes.values();
    expect(node?.labels['node.kubernetes.io/instance-type']).toBe(instanceType);
  });
});
