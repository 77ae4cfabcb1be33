// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import {
  aJoiningPool,
  aJoiningSeed,
  aJoiningTestFleet,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { aPool, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  journalReasonsIn,
  onePass,
  phasesIn,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('joinRefusal', () => {
  it('without access to a cluster, a machine that needs a token stays requested, and the reason is recorded', async () => {
    const testFleet = aJoiningTestFleet();
    const settings = joiningSettings();
    const fleet = aFleet({ ...testFleet, cluster: undefined, settings, seed: 9 });
    await fleet.scaleTo('workers', 1, REASON);
    for (let pass = 0; pass < 5; pass += 1) await onePass(fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['requested']);
    expect(await journalReasonsIn(testFleet.store)).toContain('NoClusterAccess');
  });

  it('while Kubernetes cannot be read, a machine stays requested for that reason', async () => {
    const testFleet = aJoiningTestFleet();
    const { cluster, fleet, store } = testFleet;
    const view = cluster.view.bind(cluster);
    cluster.view = () => Promise.reject(new Unreachable('KUBERNETES_UNREACHABLE', 'no route'));
    await fleet.scaleTo('workers', 1, REASON);
    await runPasses(testFleet, 3);
    expect(await phasesIn(store)).toEqual(['requested']);
    const refusals = (await store.journal.read()).filter(({ kind }) => kind === 'refused');
    expect(refusals).toMatchObject([
      { reason: 'VIEW_STALE', message: 'Kubernetes cannot be read: no route' },
    ]);
    cluster.view = view;
    await untilAtRest(fleet, testFleet);
    expect(await phasesIn(store)).toEqual(['ready']);
  });

  it.each([
    ['is known from another source', 'k3s' as const],
    ['is not needed', 'none' as const],
  ])('without access to a cluster, a machine whose token %s is created', async (_what, kind) => {
    const testFleet = aJoiningTestFleet();
    const seed = aJoiningSeed();
    const token = { kind: 'static', read: () => Promise.resolve('a-static-token') } as const;
    const join =
      kind === 'none' ? aPool().seed!.join : ({ ...seed.join, token } as typeof seed.join);
    const settings = someSettings([aJoiningPool({ seed: { ...seed, join } })]);
    const fleet = aFleet({ ...testFleet, cluster: undefined, settings, seed: 9 });
    await fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
  });
});
