// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { LoadedConfig } from '../config/index.ts';
import { loadText, VALID } from '../config/testing/load-text.ts';
import { aJoiningPool, aJoiningTestFleet } from '../fleet/testing/joining-test-fleet.ts';
import { REGION, someSettings } from '../fleet/testing/settings.ts';
import { onePass, runPasses } from '../fleet/testing/test-fleet.ts';
import { type Lease, RECONCILE_LEASE } from '../model/lease.ts';
import { MemoryPoolObjects } from '../ports/fakes/memory-pool-objects.ts';
import { aClusterPod } from '../ports/fakes/sample-cluster.ts';
import type { Log } from '../ports/log.ts';
import { PoolDefinitions } from './pool-definitions.ts';
import { PoolObjectReconciler } from './reconcile-pool-objects.ts';

const SPEC = { size: { cpu: 2, memory: '4Gi' } };
const FIXED = { ...SPEC, autoscaling: false };

async function aBench(text = VALID) {
  const testFleet = aJoiningTestFleet(someSettings([]));
  const { fleet, store, clock, cluster } = testFleet;
  const objects = new MemoryPoolObjects();
  let current: LoadedConfig | undefined;
  const definitions = new PoolDefinitions({
    objects,
    source: { load: (file, pools) => Promise.resolve(loadText(file, { pools })) },
    current: () => {
      if (current === undefined) throw new Error('nothing was applied yet');
      return current;
    },
  });
  const holder = { name: RECONCILE_LEASE, holder: 'test', durationMs: 3_600_000 };
  let lease: Lease | undefined = await store.leases.acquire(holder);
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const log: Log = { debug: warn, info: warn, warn, error: warn, with: () => log };
  const reconciler = new PoolObjectReconciler({
    objects,
    definitions,
    fleet: { ...fleet, driverLease: () => lease },
    clock,
    namespace: 'pvescaler',
    cluster,
    regions: [REGION],
    log,
  });
  /** As the daemon does: settings, then the objects. */
  const reconcile = async () => {
    if (definitions.hasChanged()) {
      const loaded = await definitions.load(text);
      if (!loaded.ok) throw new Error('the file is invalid');
      current = loaded;
      const pools = loaded.config.pools.filter(({ name }) => name !== 'small');
      fleet.replaceSettings(
        someSettings(pools.map(({ name, limits }) => aJoiningPool({ name, limits }))),
      );
    }
    await reconciler.reconcile();
  };
  const pass = async (count = 1) => {
    for (let index = 0; index < count; index += 1) {
      await reconcile();
      reconciler.recordPass(await onePass(fleet, testFleet));
      lease = await store.leases.read(RECONCILE_LEASE);
    }
    await reconcile();
  };
  const phases = async (pool: string) => {
    const { machines } = await fleet.status();
    return machines
      .filter((one) => one.pool === pool)
      .map(({ phase }) => phase)
      .filter((phase) => phase !== 'gone');
  };
  const condition = (name: string, type: string) => {
    const found = objects.get(name)?.status?.conditions?.find((one) => one.type === type);
    return `${found?.status} ${found?.reason}`;
  };
  const until = async (what: string, isDone: () => boolean | Promise<boolean>) => {
    for (let count = 0; count < 1_000; count += 1) {
      if (await isDone()) return;
      await pass();
    }
    throw new Error(`not reached: ${what}`);
  };
  return {
    ...testFleet,
    objects,
    definitions,
    reconciler,
    reconcile,
    pass,
    phases,
    condition,
    until,
    warnings,
    stopLeading: () => {
      lease = undefined;
    },
  };
}

type Bench = Awaited<ReturnType<typeof aBench>>;

async function withReadyMachines(count: number, spec: object = FIXED): Promise<Bench> {
  const bench = await aBench();
  bench.objects.put('web', { ...spec, replicas: count });
  await bench.until('all are ready', async () => {
    const phases = await bench.phases('web');
    return phases.length === count && phases.every((phase) => phase === 'ready');
  });
  await bench.pass();
  return bench;
}

describe('a pool object in use', () => {
  it('is held, then its status is written once', async () => {
    const { objects, reconcile, condition, cluster } = await aBench();
    objects.put('web', SPEC);
    for (let count = 0; count < 5; count += 1) await reconcile();
    expect(objects.writes).toEqual(['hold web', 'status web']);
    expect(objects.get('web')?.status).toMatchObject({
      observedGeneration: 1,
      replicas: 0,
      minReplicas: 0,
      maxReplicas: 10,
      selector: 'autoscaler.proxmox/group=web',
    });
    expect(
      ['Ready', 'BackedOff', 'AtCapacity', 'Paused'].map((type) => condition('web', type)),
    ).toEqual(['True InUse', 'False NoFailures', 'False BelowMaximum', 'False NotPaused']);
    expect(cluster.state.events).toEqual([]);
  });

  it('is not written by a replica that does not lead', async () => {
    const { objects, reconcile, stopLeading } = await aBench();
    stopLeading();
    objects.put('web', SPEC);
    await reconcile();
    expect(objects.writes).toEqual([]);
  });

  it('reports why it is left out, with an Event, and is in use once it is valid', async () => {
    const { objects, reconcile, condition, cluster } = await aBench();
    objects.put('web', { ...SPEC, from: { image: 'none' } });
    objects.put('small', SPEC);
    await reconcile();
    expect(condition('web', 'Ready')).toBe('False Invalid');
    expect(condition('small', 'Ready')).toBe('False NameInConfigFile');
    expect(condition('web', 'Paused')).toBe('Unknown NotInUse');
    expect(cluster.state.events).toMatchObject([
      { regarding: { kind: 'ProxmoxPool', name: 'web' }, type: 'Warning', reason: 'Invalid' },
      { regarding: { name: 'small' }, type: 'Warning', reason: 'NameInConfigFile' },
    ]);
    expect(objects.writes).toEqual(['status web', 'status small']);
    objects.put('web', SPEC);
    for (let count = 0; count < 3; count += 1) await reconcile();
    expect(condition('web', 'Ready')).toBe('True InUse');
    expect(objects.get('web')?.status?.observedGeneration).toBe(2);
  });

  it('waits for the next change after a conflict, and logs other errors once', async () => {
    const { objects, reconcile, warnings } = await aBench();
    objects.put('web', SPEC);
    const setHeld = objects.setHeld.bind(objects);
    objects.setHeld = async () => {
      throw new Error('no right to patch');
    };
    await reconcile();
    await reconcile();
    expect(warnings).toEqual(['ProxmoxPool web was not reconciled']);
    objects.setHeld = async (object, isHeld) => {
      objects.put('web', SPEC);
      await setHeld(object, isHeld);
    };
    await reconcile();
    expect(warnings).toHaveLength(1);
  });
});

describe('a pool without an autoscaler', () => {
  it('has as many machines as spec.replicas says, and drains what is too much', async () => {
    const bench = await withReadyMachines(3);
    expect(bench.objects.get('web')?.status).toMatchObject({ replicas: 3, readyReplicas: 3 });
    expect(bench.condition('web', 'AtCapacity')).toBe('False FixedSize');
    bench.objects.put('web', { ...FIXED, replicas: 1 });
    await bench.pass();
    expect((await bench.phases('web')).toSorted()).toEqual(['draining', 'draining', 'ready']);
    expect(bench.objects.get('web')?.status?.replicas).toBe(3);
    await bench.until('one is left', async () => (await bench.phases('web')).length === 1);
    await bench.pass();
    expect(bench.objects.get('web')?.status).toMatchObject({ replicas: 1, observedGeneration: 2 });
    const intents = (await bench.store.intents.list()).map(({ value }) => value);
    expect(intents.filter(({ kind }) => kind === 'drain')).toMatchObject([
      { requestedBy: 'pool-object', reason: 'spec.replicas of ProxmoxPool web is 1' },
    ]);
  });
});

describe('a deleted pool object', () => {
  it('is gone once its machines are drained and two complete passes found none', async () => {
    const bench = await withReadyMachines(2);
    bench.objects.delete('web');
    await bench.pass();
    expect(await bench.phases('web')).toEqual(['draining', 'draining']);
    expect(bench.condition('web', 'Ready')).toBe('False Terminating');
    await bench.until('it is gone', () => bench.objects.get('web') === undefined);
    expect(await bench.phases('web')).toEqual([]);
    expect(bench.hypervisor.state.vms.size).toBe(3);
  });

  it('stays while a region cannot be read', async () => {
    const bench = await aBench();
    bench.objects.put('web', SPEC);
    await bench.pass();
    bench.objects.delete('web');
    await bench.reconcile();
    const report = { ...(await onePass(bench.fleet, bench)), stale: { [REGION]: 'unreachable' } };
    for (let count = 0; count < 5; count += 1) {
      bench.reconciler.recordPass(report);
      await bench.reconcile();
    }
    expect(bench.objects.get('web')?.isTerminating).toBe(true);
    await bench.pass(2);
    expect(bench.objects.get('web')).toBeUndefined();
  });

  it('says what blocks the drain, and requests it again later', async () => {
    const bench = await withReadyMachines(1);
    const [machine] = (await bench.fleet.status()).machines;
    const pod = aClusterPod({ nodeName: machine?.nodeName ?? '' });
    bench.cluster.state.putPod(pod);
    bench.cluster.state.protectedPods.set(`${pod.namespace}/${pod.name}`, 'a budget allows none');
    bench.objects.delete('web');
    const message = () => JSON.stringify(bench.objects.get('web')?.status?.conditions?.[0]);
    await bench.until('it says why', () => message().includes('a budget allows none'));
    expect(await bench.phases('web')).toEqual(['draining']);
    await bench.until('the drain is undone', () => message().includes('was undone'));
    await bench.clock.advance(10 * 60_000);
    bench.cluster.state.protectedPods.clear();
    await bench.until('it is gone', () => bench.objects.get('web') === undefined);
  });

  it('leaves its machines with deletionPolicy Orphan', async () => {
    const bench = await withReadyMachines(1, { ...FIXED, deletionPolicy: 'Orphan' });
    expect(bench.objects.writes).not.toContain('hold web');
    bench.objects.delete('web');
    await bench.pass(30);
    expect(await bench.phases('web')).toEqual(['ready']);
  });

  it('leaves its machines when the policy is changed to Orphan before', async () => {
    const bench = await withReadyMachines(1);
    bench.objects.put('web', { ...FIXED, replicas: 1, deletionPolicy: 'Orphan' });
    await bench.pass();
    bench.objects.delete('web');
    await bench.pass(30);
    expect(bench.objects.get('web')).toBeUndefined();
    expect(await bench.phases('web')).toEqual(['ready']);
  });

  it('is released at once when the config file has its name', async () => {
    const bench = await withReadyMachines(1);
    bench.objects.put('small', SPEC);
    await bench.reconcile();
    const small = bench.objects.get('small');
    if (small !== undefined) await bench.objects.setHeld(small, true);
    bench.objects.delete('small');
    await bench.reconcile();
    expect(bench.objects.get('small')).toBeUndefined();
    expect(await bench.phases('web')).toEqual(['ready']);
  });
});

describe('lost pool objects', () => {
  it('leave their machines, which belong to the pool again when it is defined again', async () => {
    const bench = await withReadyMachines(2);
    bench.objects.lose('web');
    await bench.pass(30);
    expect(await bench.phases('web')).toEqual(['ready', 'ready']);
    bench.objects.put('web', { ...FIXED, replicas: 2 });
    await bench.pass(3);
    expect(bench.objects.get('web')?.status).toMatchObject({ replicas: 2, readyReplicas: 2 });
    await runPasses(bench, 10);
    expect(await bench.phases('web')).toEqual(['ready', 'ready']);
  });
});
