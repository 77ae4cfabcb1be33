// SPDX-License-Identifier: Apache-2.0
// Settings that are replaced while the fleet runs. After it the fleet does what a restarted process would do.
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Phase } from '../../model/machine.ts';
import { Bug } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import type { PoolSettings } from '../context/settings.ts';
import {
  aJoiningPool,
  aJoiningSeed,
  aJoiningTestFleet,
  aReadyMachine,
} from '../testing/joining-test-fleet.ts';
import { aPool, aRegion, REGION, someSettings, templateSource } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  onePass,
  phasesIn,
  REASON,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const limited = (limits: Partial<PoolSettings['limits']>) =>
  aPool({ limits: { ...aPool().limits, ...limits } });

const WITHOUT_POOL = someSettings([]);

/** Calls `change` within the next pass, after it has taken its settings. */
function duringNextPass({ hypervisor }: TestFleet, change: () => void): void {
  const storageSpace = hypervisor.storageSpace.bind(hypervisor);
  hypervisor.storageSpace = (...args) => {
    hypervisor.storageSpace = storageSpace;
    change();
    return storageSpace(...args);
  };
}

describe('replaceSettings', () => {
  it('lets a pass in progress end with the settings that it began with', async () => {
    const testFleet = aTestFleet();
    const { fleet, store } = testFleet;
    await fleet.scaleTo('workers', 1, REASON);
    let isReplaced = false;
    duringNextPass(testFleet, () => {
      fleet.replaceSettings(someSettings([limited({ min: 3 })]));
      isReplaced = true;
    });
    await onePass(fleet, testFleet);
    expect(isReplaced).toBe(true);
    expect(await machinesIn(store)).toHaveLength(1);
    await onePass(fleet, testFleet);
    expect(await machinesIn(store)).toHaveLength(3);
  });

  it('lets a pass place a machine whose pool has gone meanwhile, and does not create it afterwards', async () => {
    const testFleet = aTestFleet();
    const { fleet, store } = testFleet;
    await fleet.scaleTo('workers', 1, REASON);
    duringNextPass(testFleet, () => fleet.replaceSettings(WITHOUT_POOL));
    await onePass(fleet, testFleet);
    expect((await machinesIn(store))[0]?.placement).toBeDefined();
    await untilAtRest(fleet, testFleet);
    expect(await phasesIn(store)).toEqual(['failed']);
    expect(existingResources(testFleet.hypervisor)).toEqual({ vms: [], machines: [], isos: [] });
  });

  it('judges requests by the new limits at once', async () => {
    const { fleet } = aTestFleet(someSettings([limited({ max: 2 })]));
    await expect(fleet.request('workers', 3, REASON)).rejects.toThrow('is limited to');
    fleet.replaceSettings(someSettings([limited({ max: 3 })]));
    expect((await fleet.request('workers', 3, REASON)).machines).toHaveLength(3);
    fleet.replaceSettings(WITHOUT_POOL);
    await expect(fleet.request('workers', 1, REASON)).rejects.toThrow('no pool workers');
  });

  it('begins a pass within two seconds, however long the interval between passes is', async () => {
    const settings = someSettings([aPool()], { reconcileMs: 600_000 });
    const { clock, fleet, store } = aTestFleet(settings);
    const stop = new AbortController();
    const driving = fleet.runDriver({ signal: stop.signal });
    onTestFinished(async () => {
      stop.abort();
      await advanceUntilSettled(clock, driving);
    });
    for (let second = 0; second < 60; second += 1) await clock.advance(1_000);
    expect(await machinesIn(store)).toEqual([]);
    fleet.replaceSettings({ ...settings, pools: { workers: limited({ min: 2 }) } });
    for (let second = 0; second < 2; second += 1) await clock.advance(1_000);
    expect(await machinesIn(store)).toHaveLength(2);
  });

  it('keeps the machines of a pool whose maximum is now below its size, and accepts no more', async () => {
    const testFleet = aTestFleet();
    const { fleet, store, hypervisor } = testFleet;
    await fleet.scaleTo('workers', 3, REASON);
    await untilAtRest(fleet, testFleet);
    fleet.replaceSettings(someSettings([limited({ max: 1 })]));
    await runPasses(testFleet, 20);
    expect(await phasesIn(store)).toEqual(['ready', 'ready', 'ready']);
    expect(existingResources(hypervisor).vms).toHaveLength(3);
    await expect(fleet.request('workers', 1, REASON)).rejects.toThrow('is limited to');
  });

  it('creates the machines of a pool that was added, and of a minimum that was raised', async () => {
    const testFleet = aTestFleet();
    const { fleet, store } = testFleet;
    await untilAtRest(fleet, testFleet);
    const added = { ...limited({ min: 1 }), name: 'added' };
    fleet.replaceSettings(someSettings([limited({ min: 2 }), added]));
    await untilAtRest(fleet, testFleet);
    const pools = (await machinesIn(store)).map(({ pool }) => pool);
    expect(pools.toSorted()).toEqual(['added', 'workers', 'workers']);
    expect(fleet.forecast.headroom('added')?.machines).toBeGreaterThan(0);
  });

  it('computes the headroom in the next pass, and forgets that of pools that have gone', async () => {
    const testFleet = aTestFleet(someSettings([limited({ max: 2 })]));
    const { fleet } = testFleet;
    await onePass(fleet, testFleet);
    expect(fleet.forecast.headroom('workers')?.machines).toBe(2);
    fleet.replaceSettings(someSettings([limited({ max: 5 })]));
    await onePass(fleet, testFleet);
    expect(fleet.forecast.headroom('workers')?.machines).toBe(5);
    fleet.replaceSettings(WITHOUT_POOL);
    await onePass(fleet, testFleet);
    expect(fleet.forecast.headroom('workers')).toBeUndefined();
  });

  it('changes the labels of Nodes that were complete before', async () => {
    const role = 'node-role.kubernetes.io/worker';
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    const labels = () => testFleet.cluster.state.nodes.get(placement.name)?.labels;
    await runPasses(testFleet, 3);
    expect(labels()).toHaveProperty([role]);
    const seed = aJoiningSeed({ labels: { tier: 'small' } });
    testFleet.fleet.replaceSettings(someSettings([aJoiningPool({ seed })]));
    await runPasses(testFleet, 3);
    expect(labels()).not.toHaveProperty([role]);
  });

  it('leaves no VM behind when the source of a pool changes while its machine is created', async () => {
    const seen = new Set<Phase>();
    for (let passes = 1; passes < 12; passes += 1) {
      const testFleet = aTestFleet(someSettings([aPool({ source: templateSource() })]));
      const { fleet, store, hypervisor } = testFleet;
      await fleet.scaleTo('workers', 1, REASON);
      await runPasses(testFleet, passes);
      for (const phase of await phasesIn(store)) seen.add(phase);
      fleet.replaceSettings(someSettings([aPool()]));
      await runPasses(testFleet, 60);
      const live = (await machinesIn(store)).filter(({ phase }) => phase === 'ready');
      expect(existingResources(hypervisor).machines, `after ${passes} passes`).toEqual(
        live.map(({ id }) => id),
      );
    }
    expect([...seen]).toEqual(expect.arrayContaining(['creating', 'configuring', 'booting']));
  });

  it('removes the seeds of both storages when the one of seeds changes', async () => {
    const seen = new Set<Phase>();
    for (let passes = 1; passes < 14; passes += 1) {
      const testFleet = aTestFleet();
      const { fleet, store, hypervisor, clock } = testFleet;
      await fleet.scaleTo('workers', 1, REASON);
      await runPasses(testFleet, passes);
      for (const phase of await phasesIn(store)) seen.add(phase);
      const storage = { ...aRegion().storage, seeds: 'local' };
      const regions = { [REGION]: aRegion({ storage }) };
      fleet.replaceSettings(someSettings([aPool()], { regions }));
      await runPasses(testFleet, 60);
      await clock.advance(600_000);
      await runPasses(testFleet, 5);
      const note = `after ${passes} passes`;
      expect(await phasesIn(store), note).toContain('ready');
      expect(existingResources(hypervisor).isos, note).toEqual([]);
      const drives = [...hypervisor.state.vms.values()].map(({ options }) => options.get('ide2'));
      expect(
        drives.filter((drive) => drive?.includes('.iso')),
        note,
      ).toEqual([]);
    }
    expect([...seen]).toEqual(expect.arrayContaining(['configuring', 'ready']));
  });

  it('refuses settings of another cluster or list of regions', () => {
    const { fleet } = aTestFleet();
    expect(() => fleet.replaceSettings({ ...someSettings(), cluster: 'other' })).toThrow(Bug);
    expect(() => fleet.replaceSettings({ ...someSettings(), regions: {} })).toThrow(Bug);
  });
});

describe('a pool that is removed', () => {
  /** After so many passes the pool is removed, from the running fleet or by a restart. */
  async function remove(passes: number, how: 'replace' | 'restart') {
    const testFleet = aJoiningTestFleet(someSettings([aJoiningPool()]));
    const { fleet, store, hypervisor } = testFleet;
    await fleet.scaleTo('workers', 8, REASON);
    for (let pass = 0; pass < passes; pass += 1) {
      const ready = (await machinesIn(store)).find(({ phase }) => phase === 'ready');
      if (ready !== undefined && pass % 3 === 0) await fleet.remove([ready.id], REASON);
      await onePass(fleet, testFleet);
    }
    const phases = await phasesIn(store);
    if (how === 'replace') fleet.replaceSettings(WITHOUT_POOL);
    const settings = WITHOUT_POOL;
    const after = how === 'replace' ? fleet : aFleet({ ...testFleet, settings, seed: 2 });
    await runPasses({ ...testFleet, fleet: after }, 60);
    const { removedPools, pools } = await after.status();
    return {
      phases,
      after,
      testFleet,
      outcome: {
        phases: (await phasesIn(store)).toSorted(),
        vms: existingResources(hypervisor).vms.length,
        pools,
        removed: removedPools.map(({ name, machines }) => [name, machines.length]),
        reports: (await journalReasonsIn(store)).filter((one) => one === 'PoolNotInConfig').length,
      },
    };
  }

  it('leaves its machines as a restart does, whatever phase they are in', async () => {
    const seen = new Set<Phase>();
    for (let passes = 0; passes <= 24; passes += 2) {
      const live = await remove(passes, 'replace');
      const { outcome } = await remove(passes, 'restart');
      for (const phase of live.phases) seen.add(phase);
      expect(live.outcome, `after ${passes} passes`).toEqual(outcome);
    }
    expect([...seen]).toEqual(
      expect.arrayContaining(['requested', 'placed', 'creating', 'starting', 'booting', 'joining']),
    );
    expect([...seen]).toEqual(expect.arrayContaining(['ready', 'deleting', 'gone']));
  });

  it('has its machines again when it is back, and is reported again when it is removed again', async () => {
    const { after: fleet, testFleet, outcome } = await remove(28, 'replace');
    const kept = outcome.phases.filter((phase) => phase === 'ready').length;
    expect(kept).toBeGreaterThan(0);
    expect(outcome).toMatchObject({ vms: kept, removed: [['workers', kept]] });
    fleet.replaceSettings(someSettings([aJoiningPool()]));
    await runPasses(testFleet, 5);
    const { pools, removedPools } = await fleet.status();
    expect(pools).toMatchObject([{ name: 'workers', ready: kept }]);
    expect(removedPools).toEqual([]);
    fleet.replaceSettings(WITHOUT_POOL);
    await runPasses(testFleet, 2);
    const reasons = await journalReasonsIn(testFleet.store);
    expect(reasons.filter((one) => one === 'PoolNotInConfig')).toHaveLength(outcome.reports + 1);
  });
});
