// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { RECONCILE_LEASE } from '../../model/lease.ts';
import { Cancelled } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import type { Hypervisor, TaskRef } from '../../ports/hypervisor.ts';
import { createFleet } from '../fleet.ts';
import { aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { aPool, aRegion, REGION, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  phasesIn,
  REASON,
  type TestFleet,
} from '../testing/test-fleet.ts';

/** Longer than everything that a test waits for. */
const BUSY_MS = 600_000;

/** Passes so rarely that only the work queue brings machines forward. */
function aFleetWithRarePasses(): TestFleet {
  const limits = { createsPerHost: 1, createsPerStorage: 1 };
  const region = aRegion({ limits });
  const pool = aPool({ limits: { ...aPool().limits, max: 20 } });
  return aTestFleet(
    someSettings([pool], { busyMs: BUSY_MS, reconcileMs: BUSY_MS, regions: { [REGION]: region } }),
  );
}

async function waitSeconds(testFleet: TestFleet, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) await testFleet.clock.advance(1_000);
}

async function countPasses(
  testFleet: TestFleet,
  work: (stop: AbortController) => Promise<void>,
): Promise<number> {
  const finish = new AbortController();
  const signal = new AbortController();
  let [passes, begins, ends] = [0, 0, 0];
  const driving = testFleet.fleet.runDriver({
    signal: signal.signal,
    finish: finish.signal,
    events: {
      onPass: () => {
        passes += 1;
      },
      onPassBegin: () => {
        begins += 1;
      },
      onPassEnd: () => {
        ends += 1;
      },
    },
  });
  await work(finish);
  finish.abort();
  await advanceUntilSettled(testFleet.clock, driving);
  expect(ends).toBe(begins);
  return passes;
}

/** Downloads the image first, so that the machines' creation is all there is to wait for. */
async function withImage(testFleet: TestFleet): Promise<void> {
  const file = 'noble-with-agent-abababababab.qcow2';
  for (const host of ['pve1', 'pve2', 'pve3']) {
    await advanceUntilSettled(
      testFleet.clock,
      testFleet.hypervisor.downloadImage({
        host,
        storage: 'local',
        url: 'https://images.example/noble-with-agent.img',
        fileName: file,
        verifyCertificates: true,
      }),
    );
  }
  await waitSeconds(testFleet, 30);
}

describe('Reconciler: the work queue between two passes', () => {
  it('brings machines to ready, and places waiting machines when a creation ends', async () => {
    const testFleet = aFleetWithRarePasses();
    await withImage(testFleet);
    await testFleet.fleet.scaleTo('workers', 9, REASON);
    const passes = await countPasses(testFleet, async () => {
      await waitSeconds(testFleet, 60);
      const machines = await machinesIn(testFleet.store);
      expect(machines.map(({ phase }) => phase)).toEqual(Array.from({ length: 9 }, () => 'ready'));
    });
    expect(passes).toBe(1);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(9);
  });

  it('respects the limit of creations per host', async () => {
    const testFleet = aFleetWithRarePasses();
    await withImage(testFleet);
    await testFleet.fleet.scaleTo('workers', 9, REASON);
    await countPasses(testFleet, async () => {
      for (let check = 0; check < 200; check += 1) {
        await testFleet.clock.advance(300);
        const creating = (await machinesIn(testFleet.store)).filter(({ phase }) =>
          ['placed', 'creating'].includes(phase),
        );
        const hosts = creating.map(({ placement }) => placement?.host);
        expect(new Set(hosts).size).toBe(hosts.length);
      }
    });
  });

  it('starts nothing new after the finish signal', async () => {
    const testFleet = aFleetWithRarePasses();
    await withImage(testFleet);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await countPasses(testFleet, async (finish) => {
      await waitSeconds(testFleet, 2);
      finish.abort();
      await waitSeconds(testFleet, 60);
      const [machine] = await machinesIn(testFleet.store);
      expect(machine?.phase).not.toBe('ready');
    });
  });

  it('stops when the lease is lost', async () => {
    const testFleet = aFleetWithRarePasses();
    await withImage(testFleet);
    await testFleet.fleet.scaleTo('workers', 3, REASON);
    await countPasses(testFleet, async () => {
      await waitSeconds(testFleet, 2);
      const lease = await testFleet.store.leases.read(RECONCILE_LEASE);
      await testFleet.store.leases.release(lease!);
      const request = { name: RECONCILE_LEASE, holder: 'other', durationMs: 3_600_000 };
      await testFleet.store.leases.acquire(request);
      const records = await machinesIn(testFleet.store);
      await waitSeconds(testFleet, 60);
      expect(await machinesIn(testFleet.store)).toEqual(records);
      expect(records.some(({ phase }) => phase === 'ready')).toBe(false);
    });
  });

  it('lets a host that does not answer delay only its own machines', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ limits: { ...aPool().limits, max: 20 } })]));
    await withImage(testFleet);
    const hypervisor = hangingOn('pve1', testFleet.hypervisor);
    const fleet = aFleet({ ...testFleet, hypervisor, settings: someSettings(), seed: 2 });
    await fleet.scaleTo('workers', 6, REASON);
    const stop = new AbortController();
    const driving = fleet.runDriver({ signal: stop.signal });
    await waitSeconds(testFleet, 60);
    const machines = await machinesIn(testFleet.store);
    const phasesOn = (host: string) =>
      machines.filter(({ placement }) => placement?.host === host).map(({ phase }) => phase);
    expect(phasesOn('pve1')).toEqual(['creating', 'creating']);
    expect(phasesOn('pve2')).toEqual(['ready', 'ready']);
    expect(phasesOn('pve3')).toEqual(['ready', 'ready']);
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
  });

  it('treats an unexpected exception as the failure of one machine', async () => {
    const testFleet = aTestFleet();
    await withImage(testFleet);
    let isFirst = true;
    const hypervisor = wrapped(testFleet.hypervisor, 'createVm', (call) => {
      if (!isFirst) return call();
      isFirst = false;
      return Promise.reject(new ReferenceError('broken'));
    });
    const bugs: (readonly [string, string | undefined])[] = [];
    const fleet = createFleet({
      ...testFleet,
      hypervisors: new Map([[REGION, hypervisor]]),
      settings: someSettings(),
      random: new SeededRandom(2),
      onBug: (error, subject) => bugs.push([subject, error.stack]),
    });
    await fleet.scaleTo('workers', 3, REASON);
    const stop = new AbortController();
    const driving = fleet.runDriver({ signal: stop.signal });
    await waitSeconds(testFleet, 60);
    const machines = await machinesIn(testFleet.store);
    expect(machines.map(({ phase }) => phase).toSorted()).toEqual(['failed', 'ready', 'ready']);
    const failed = machines.find(({ phase }) => phase === 'failed');
    expect(bugs).toEqual([
      [`machine ${failed?.id}`, expect.stringContaining('ReferenceError: broken')],
    ]);
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
  });
});

describe('the work queue with Nodes', () => {
  it('sends each change of a Node once', async () => {
    const testFleet = aJoiningTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    const stop = new AbortController();
    const calls: string[] = [];
    testFleet.cluster.onCall = ({ method }) => {
      if (method.endsWith('Node')) calls.push(method);
    };
    const driving = testFleet.fleet.runDriver({ signal: stop.signal });
    for (let step = 0; step < 600; step += 1) {
      await testFleet.clock.advance(100);
      testFleet.guests.settle();
    }
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
    expect(calls).toEqual(['declareNode', 'changeNode']);
  });

  it('keeps a machine whose Node registers during a long pass', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.guests.behaviour = { neverRegisters: true };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    const stop = new AbortController();
    const driving = testFleet.fleet.runDriver({ signal: stop.signal });
    for (let step = 0; step < 300; step += 1) {
      await testFleet.clock.advance(100);
      testFleet.guests.settle();
    }
    for (let vmId = 1_290; vmId < 1_299; vmId += 1) {
      const options = new Map([['name', `x${vmId}`]]);
      testFleet.hypervisor.state.vms.set(vmId, {
        vmId,
        host: 'pve3',
        options,
        revision: 1,
        startedAt: undefined,
      });
    }
    const vmConfig = testFleet.hypervisor.vmConfig.bind(testFleet.hypervisor);
    testFleet.hypervisor.vmConfig = async (vm, options) => {
      if (vm.vmId >= 1_290) await testFleet.clock.sleep(40_000);
      return vmConfig(vm, options);
    };
    await testFleet.clock.advance(3_000);
    testFleet.guests.behaviour = {};
    for (let second = 0; second < 370; second += 1) {
      await testFleet.clock.advance(1_000);
      testFleet.guests.settle();
    }
    expect(await phasesIn(testFleet.store)).not.toContain('failed');
    stop.abort();
    await advanceUntilSettled(testFleet.clock, driving);
  });
});

function hangingOn(host: string, hypervisor: Hypervisor): Hypervisor {
  return wrapped(hypervisor, 'createVm', (call, order, options) => {
    if (order.host !== host) return call();
    return new Promise((_resolve, reject) => {
      options?.signal?.addEventListener('abort', () => reject(new Cancelled('CANCELLED', 'ended')));
    });
  });
}

/** The same hypervisor with another `createVm`. */
function wrapped(
  hypervisor: Hypervisor,
  method: 'createVm',
  createVm: (
    call: () => Promise<TaskRef>,
    ...given: Parameters<Hypervisor['createVm']>
  ) => Promise<TaskRef>,
): Hypervisor {
  return new Proxy(hypervisor, {
    get: (target, name, receiver) => {
      const member: unknown = Reflect.get(target, name, receiver);
      if (typeof member !== 'function') return member;
      if (name !== method) return member.bind(target);
      return (...given: Parameters<Hypervisor['createVm']>) =>
        createVm(() => target.createVm(...given), ...given);
    },
  });
}
