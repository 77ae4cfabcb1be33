// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { JoinSettings } from '../context/join-settings.ts';
import { aJoiningPool, aJoiningSeed, aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { someSettings } from '../testing/settings.ts';
import { aFleet, phasesIn, REASON, untilAtRest } from '../testing/test-fleet.ts';

/** A pool whose join is changed a little. */
function joinedBy(change: (join: JoinSettings) => JoinSettings) {
  const seed = aJoiningSeed();
  return someSettings([aJoiningPool({ seed: { ...seed, join: change(seed.join) } })]);
}

describe('booting', () => {
  it('without access to a cluster, a machine becomes ready when its guest is up', async () => {
    const testFleet = aJoiningTestFleet();
    const settings = joinedBy((join) =>
      join.kind === 'none'
        ? join
        : { ...join, token: { kind: 'static', read: () => Promise.resolve('a-static-token') } },
    );
    const fleet = aFleet({ ...testFleet, cluster: undefined, settings, seed: 9 });
    await fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
  });
});
