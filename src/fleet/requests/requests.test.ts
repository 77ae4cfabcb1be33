// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { countOutcomes } from '../../ports/contract/store-fixture.contract.ts';
import { NoCapacity, Unreachable } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { DEFER_MS } from '../../ports/store.ts';
import { aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { aPool, REGION, someSettings } from '../testing/settings.ts';
import {
  aFleet,
  aTestFleet,
  existingResources,
  machinesIn,
  onePass,
  phasesIn,
  REASON,
  reachPhase,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

const GIB = 2 ** 30;
const LIMITS = aPool().limits;
/** Passes, one a second, after which no newer settings are expected that allow the request. */
const AFTER_NEWER_SETTINGS = 62;

function withLimits(limits: Partial<typeof LIMITS>) {
  return aTestFleet(someSettings([aPool({ limits: { ...LIMITS, ...limits } })]));
}

async function targetOf(testFleet: ReturnType<typeof aTestFleet>): Promise<number | undefined> {
  return (await testFleet.fleet.status()).pools[0]?.target;
}

describe('request', () => {
  it('never accepts more than the maximum, however many calls run concurrently', async () => {
    const testFleet = aTestFleet();
    const { resolved, codes } = await countOutcomes(
      Array.from({ length: 7 }, () => testFleet.fleet.request('workers', 3, REASON)),
    );
    expect({ resolved, codes: new Set(codes) }).toEqual({
      resolved: 3,
      codes: new Set(['POOL_AT_MAXIMUM']),
    });
    expect(await targetOf(testFleet)).toBe(9);
  });

  it('machines beyond the maximum fail when two processes request at the same time', async () => {
    const testFleet = aTestFleet();
    const other = aFleet({ ...testFleet, settings: someSettings(), seed: 9 });
    await Promise.all([
      testFleet.fleet.request('workers', 6, REASON),
      other.request('workers', 6, REASON),
    ]);
    await runPasses(testFleet, AFTER_NEWER_SETTINGS);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(10);
    const failed = (await machinesIn(testFleet.store)).filter(({ phase }) => phase === 'failed');
    expect(failed.map(({ failure }) => failure?.code)).toEqual([
      'POOL_AT_MAXIMUM',
      'POOL_AT_MAXIMUM',
    ]);
  });

  it('records no intent when the caller aborts before the write', async () => {
    const testFleet = aTestFleet();
    const abort = new AbortController();
    const call = testFleet.fleet.request('workers', 1, { ...REASON, signal: abort.signal });
    abort.abort();
    await expect(call).rejects.toMatchObject({ code: 'CANCELLED' });
    expect(await testFleet.store.intents.list()).toEqual([]);
    expect(await targetOf(testFleet)).toBe(0);
  });

  it.each([-1, 1.5, Number.NaN])('refuses %d machines', async (count) => {
    const { fleet, store } = aTestFleet();
    const error = { code: 'REQUEST_INVALID', message: `${count} is not a number of machines` };
    await expect(fleet.request('workers', count, REASON)).rejects.toMatchObject(error);
    await expect(fleet.scaleTo('workers', count, REASON)).rejects.toMatchObject(error);
    await expect(fleet.cancel('workers', count, REASON)).rejects.toMatchObject(error);
    expect(await store.intents.list()).toEqual([]);
  });

  it('of no machine, or of a pool without a machine to cancel, records no intent', async () => {
    const { fleet, store } = aTestFleet();
    const nothing = { intent: undefined, machines: [] };
    expect(await fleet.request('workers', 0, REASON)).toEqual(nothing);
    expect(await fleet.scaleTo('workers', 0, REASON)).toEqual(nothing);
    expect(await fleet.cancel('workers', 3, REASON)).toEqual(nothing);
    expect(await fleet.remove([], REASON)).toEqual(nothing);
    expect(await store.intents.list()).toEqual([]);
    await expect(fleet.cancel('unknown', 1, REASON)).rejects.toMatchObject({
      code: 'POOL_NOT_FOUND',
    });
  });

  it('accepts a call after an earlier one failed', async () => {
    const testFleet = aTestFleet();
    const calls = [
      testFleet.fleet.request('workers', 11, REASON),
      testFleet.fleet.request('workers', 1, REASON),
    ];
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual([
      'rejected',
      'fulfilled',
    ]);
  });
});

describe('request: host and fence', () => {
  it('with a lease may be lost by a crash, unless it must last', async () => {
    const { fleet, store } = aTestFleet();
    const fence = await store.leases.acquire({ name: 'l', holder: 'a', durationMs: 60_000 });
    const deferred: unknown[] = [];
    const create = store.intents.create.bind(store.intents);
    store.intents.create = (key, value, options) => {
      deferred.push(options?.deferMs);
      return create(key, value, options);
    };
    await fleet.request('workers', 1, REASON);
    await fleet.request('workers', 1, { ...REASON, fence });
    await fleet.request('workers', 1, { ...REASON, fence, isDurable: true });
    expect(deferred).toEqual([0, DEFER_MS, 0]);
  });

  it('places machines only on the host that the request names', async () => {
    const testFleet = aTestFleet();
    const host = { region: REGION, host: 'pve3' };
    await testFleet.fleet.request('workers', 3, { ...REASON, host });
    await untilAtRest(testFleet.fleet, testFleet);
    const machines = await machinesIn(testFleet.store);
    expect(machines.map(({ placement }) => placement?.host)).toEqual(['pve3', 'pve3', 'pve3']);
  });

  it('leaves a machine requested when its host cannot have it, with the reason', async () => {
    const testFleet = aTestFleet();
    testFleet.hypervisor.setOnline('pve3', false);
    const host = { region: REGION, host: 'pve3' };
    await testFleet.fleet.request('workers', 1, { ...REASON, host });
    await runPasses(testFleet, 4);
    expect(await phasesIn(testFleet.store)).toEqual(['requested']);
    const journal = await testFleet.store.journal.read();
    expect(journal.map(({ message }) => message).join()).toContain('host pve3 is offline');
  });

  it('requests nothing with a lease that another process holds by now', async () => {
    const testFleet = aTestFleet();
    const request = { name: 'reconcile', durationMs: 10_000 };
    const fence = await testFleet.store.leases.acquire({ ...request, holder: 'a' });
    await testFleet.fleet.request('workers', 1, { ...REASON, fence });
    await testFleet.clock.advance(11_000);
    await testFleet.store.leases.acquire({ ...request, holder: 'b' });
    const late = testFleet.fleet.request('workers', 1, { ...REASON, fence });
    await expect(late).rejects.toMatchObject({ code: 'LEASE_LOST' });
    expect(await testFleet.store.intents.list()).toHaveLength(1);
  });
});

describe('resume', () => {
  it('ends the pause of a pool', async () => {
    const testFleet = aTestFleet();
    const pause = { since: 1, until: testFleet.clock.now() + 60_000, reason: 'test' };
    await testFleet.store.pools.create('workers', { pool: 'workers', allocatable: {}, pause });
    expect((await testFleet.fleet.status()).pools[0]?.pause).toEqual(pause);
    await testFleet.fleet.resume('workers', REASON);
    await runPasses(testFleet, 1);
    expect((await testFleet.fleet.status()).pools[0]?.pause).toBeUndefined();
    const reasons = (await testFleet.store.journal.read()).map(({ reason }) => reason);
    expect(reasons).toContain('PoolResumed');
  });
});

describe('cancelMachines', () => {
  it('cancels a machine that has no place, and not one that has a VM', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.request('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [ready] = await machinesIn(testFleet.store);
    const { machines } = await testFleet.fleet.request('workers', 1, REASON);
    await testFleet.fleet.cancelMachines([...machines, ready!.id], REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect((await phasesIn(testFleet.store)).toSorted()).toEqual(['gone', 'ready']);
  });
});

describe('scaleTo', () => {
  it('refuses a size above the maximum, a size below the minimum, and an unknown pool', async () => {
    const { fleet } = aTestFleet(
      someSettings([aPool({ limits: { ...aPool().limits, min: 1, max: 3 } })]),
    );
    await expect(fleet.scaleTo('workers', 4, REASON)).rejects.toBeInstanceOf(NoCapacity);
    await expect(fleet.scaleTo('workers', 0, REASON)).rejects.toMatchObject({
      code: 'REQUEST_INVALID',
    });
    await expect(fleet.scaleTo('unknown', 1, REASON)).rejects.toMatchObject({
      code: 'POOL_NOT_FOUND',
    });
  });

  it('cancels machines that have no VM yet without a call that changes Proxmox', async () => {
    const testFleet = aTestFleet();
    const { machines } = await testFleet.fleet.request('workers', 2, REASON);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone', 'gone']);
    expect(machines).toHaveLength(2);
    const methods = new Set(testFleet.hypervisor.calls.map(({ method }) => method));
    expect([...methods].sort()).toEqual(['view', 'volumes']);
  });
});

describe('scaleTo: which machines are deleted', () => {
  /** Three ready machines in three hosts, the oldest first. */
  async function threeReadyMachines() {
    const testFleet = aJoiningTestFleet();
    for (const size of [1, 2, 3]) {
      await testFleet.fleet.scaleTo('workers', size, REASON);
      await untilAtRest(testFleet.fleet, testFleet);
    }
    const machines = (await machinesIn(testFleet.store)).toSorted(
      (a, b) => a.requestedAt - b.requestedAt,
    );
    return { ...testFleet, machines };
  }

  it('deletes the youngest when all work, and a NotReady one before it', async () => {
    const { fleet, cluster, machines } = await threeReadyMachines();
    cluster.state.updateNode(machines[0]?.nodeName ?? '', { ready: false });
    const { machines: chosen } = await fleet.scaleTo('workers', 1, REASON);
    expect(chosen).toEqual([machines[0]?.id, machines[2]?.id]);
  });

  it('deletes a machine on a host that is down before one whose Node is NotReady', async () => {
    const { fleet, cluster, hypervisor, machines } = await threeReadyMachines();
    hypervisor.setOnline(machines[1]?.placement?.host ?? '', false);
    cluster.state.updateNode(machines[0]?.nodeName ?? '', { ready: false });
    const { machines: chosen } = await fleet.scaleTo('workers', 1, REASON);
    expect(chosen).toEqual([machines[1]?.id, machines[0]?.id]);
  });

  it('deletes the youngest when neither Proxmox nor Kubernetes can be read', async () => {
    const { fleet, cluster, hypervisor, machines } = await threeReadyMachines();
    hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'no route to host'));
    cluster.failNext('refresh', new Unreachable('KUBERNETES_UNREACHABLE', 'no route to host'));
    const { machines: chosen } = await fleet.scaleTo('workers', 2, REASON);
    expect(chosen).toEqual([machines[2]?.id]);
  });

  it('reads neither Proxmox nor Kubernetes when all machines are deleted', async () => {
    const { fleet, cluster, hypervisor } = await threeReadyMachines();
    const calls = () => hypervisor.calls.length + cluster.calls.length;
    const before = calls();
    await fleet.scaleTo('workers', 0, REASON);
    expect(calls()).toBe(before);
  });
});

describe('requests for one node group of a pool with several sizes', () => {
  const small = { cpu: 2, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
  const large = { cpu: 4, memoryBytes: 8 * GIB, diskBytes: 20 * GIB };
  const nodeGroups = [
    { id: 'workers-small', instanceType: 'small', size: small },
    { id: 'workers-large', instanceType: 'large', size: large },
  ];
  const inGroup = (nodeGroup: string) => ({ ...REASON, nodeGroup });

  async function aPoolOfTwoSizes(limits: Partial<typeof LIMITS> = {}) {
    const pool = aPool({ size: small, nodeGroups, limits: { ...LIMITS, ...limits } });
    const testFleet = aTestFleet(someSettings([pool]));
    await testFleet.fleet.scaleTo('workers', 2, inGroup('workers-small'));
    await testFleet.fleet.scaleTo('workers', 1, inGroup('workers-large'));
    await untilAtRest(testFleet.fleet, testFleet);
    return testFleet;
  }

  async function groupsOf({ fleet }: Pick<ReturnType<typeof aTestFleet>, 'fleet'>) {
    const [pool] = (await fleet.status()).pools;
    return pool?.nodeGroups.map(({ name, target, ready }) => [name, target, ready]);
  }

  it('scaleTo counts, creates and deletes only machines of that group', async () => {
    const testFleet = await aPoolOfTwoSizes();
    expect(await groupsOf(testFleet)).toEqual([
      ['workers-small', 2, 2],
      ['workers-large', 1, 1],
    ]);
    await testFleet.fleet.scaleTo('workers', 0, inGroup('workers-small'));
    await testFleet.fleet.scaleTo('workers', 2, inGroup('workers-large'));
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await groupsOf(testFleet)).toEqual([
      ['workers-small', 0, 0],
      ['workers-large', 2, 2],
    ]);
  });

  it('scaleTo keeps the limits of the whole pool', async () => {
    const { fleet } = await aPoolOfTwoSizes({ min: 2, max: 4 });
    await expect(fleet.scaleTo('workers', 3, inGroup('workers-large'))).rejects.toMatchObject({
      code: 'POOL_AT_MAXIMUM',
    });
    await expect(fleet.scaleTo('workers', 0, inGroup('workers-small'))).rejects.toMatchObject({
      code: 'REQUEST_INVALID',
      hint: expect.stringContaining('or scale to 1.'),
    });
    await expect(fleet.scaleTo('workers', 1, inGroup('workers-huge'))).rejects.toMatchObject({
      code: 'POOL_NOT_FOUND',
    });
  });
});

describe('remove', () => {
  it('deletes each machine once, however many concurrent calls name it', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.request('workers', 4, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const ids = (await machinesIn(testFleet.store)).map(({ id }) => id).slice(0, 3);
    await Promise.all([...ids, ...ids].map((id) => testFleet.fleet.remove([id], REASON)));
    expect(await targetOf(testFleet)).toBe(1);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
  });

  it('deletes a machine that was just requested and has no record yet', async () => {
    const testFleet = aTestFleet();
    const { machines } = await testFleet.fleet.request('workers', 2, REASON);
    await testFleet.fleet.remove(machines.slice(0, 1), REASON);
    expect(await targetOf(testFleet)).toBe(1);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).machines).toEqual(machines.slice(1));
  });

  it('acknowledges a failed machine, which is gone afterwards', async () => {
    const testFleet = aTestFleet();
    const other = aFleet({ ...testFleet, settings: someSettings(), seed: 9 });
    await Promise.all([
      testFleet.fleet.request('workers', 10, REASON),
      other.request('workers', 1, REASON),
    ]);
    await runPasses(testFleet, AFTER_NEWER_SETTINGS);
    const failed = (await machinesIn(testFleet.store)).filter(({ phase }) => phase === 'failed');
    await testFleet.fleet.remove(
      failed.map(({ id }) => id),
      REASON,
    );
    await untilAtRest(testFleet.fleet, testFleet);
    const after = (await machinesIn(testFleet.store)).filter(({ id }) => id === failed[0]?.id);
    expect(after.map(({ phase }) => phase)).toEqual(['gone']);
    expect(await targetOf(testFleet)).toBe(10);
  });
});

describe('cancel', () => {
  it('cancels only machines that have no VM, and returns which', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.request('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    await testFleet.fleet.request('workers', 3, REASON);
    const { machines } = await testFleet.fleet.cancel('workers', 9, REASON);
    expect(machines).toHaveLength(3);
    expect(await targetOf(testFleet)).toBe(2);
    expect((await testFleet.fleet.cancel('workers', 1, REASON)).machines).toEqual([]);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(2);
  });

  it('cancels from another process until the call that creates the VM', async () => {
    const settings = someSettings([aPool({ source: { kind: 'netboot' }, seed: undefined })]);
    const testFleet = aTestFleet(settings);
    const other = aFleet({ ...testFleet, settings, seed: 9 });
    await testFleet.fleet.request('workers', 1, REASON);
    const view = testFleet.hypervisor.view.bind(testFleet.hypervisor);
    testFleet.hypervisor.view = async (options) => {
      testFleet.hypervisor.view = view;
      // The pass has read the records by now.
      expect((await other.cancel('workers', 1, REASON)).machines).toHaveLength(1);
      return view(options);
    };
    await onePass(testFleet.fleet, testFleet);
    await untilAtRest(testFleet.fleet, testFleet);
    const creations = testFleet.hypervisor.calls.filter(({ method }) => method === 'createVm');
    expect(creations).toEqual([]);
    expect((await machinesIn(testFleet.store)).map(({ phase }) => phase)).toEqual(['gone']);
  });

  it('cancels machines that are not started yet while a pass is running', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.request('workers', 6, REASON);
    const pass = onePass(testFleet.fleet, testFleet);
    while ((await testFleet.store.machines.list()).length < 6) await Promise.resolve();
    const { machines } = await testFleet.fleet.cancel('workers', 6, REASON);
    await pass;
    await untilAtRest(testFleet.fleet, testFleet);
    const left = existingResources(testFleet.hypervisor);
    expect(left.machines.filter((id) => machines.some((one) => one === id))).toEqual([]);
    expect(left.vms.length + machines.length).toBe(6);
  });
});

describe('request: the cpu and memory limits of a pool', () => {
  it('the cpu limit counts all machines, including requested ones', async () => {
    const { fleet } = withLimits({ cpu: 5 });
    await fleet.request('workers', 2, REASON);
    await expect(fleet.request('workers', 1, REASON)).rejects.toMatchObject({
      code: 'POOL_AT_MAXIMUM',
      message: 'pool workers is limited to 5 vCPUs; 3 machines would have 6',
    });
    expect((await fleet.status()).pools[0]?.atLimit).toBe(
      'pool workers is limited to 5 vCPUs; 3 machines would have 6',
    );
  });

  it('the status names no limit while one more machine is allowed', async () => {
    const { fleet } = withLimits({ cpu: 4 });
    await fleet.request('workers', 1, REASON);
    expect((await fleet.status()).pools[0]?.atLimit).toBeUndefined();
  });

  it('the memory limit counts the size of the request', async () => {
    const { fleet } = withLimits({ memoryBytes: 5 * GIB });
    await fleet.request('workers', 1, REASON);
    const size = { cpu: 1, memoryBytes: 4 * GIB, diskBytes: 20 * GIB };
    await expect(fleet.request('workers', 1, { ...REASON, size })).rejects.toMatchObject({
      code: 'POOL_AT_MAXIMUM',
      message: 'pool workers is limited to 5 GiB of memory; 2 machines would have 6 GiB',
    });
    await expect(fleet.scaleTo('workers', 2, REASON)).resolves.toHaveProperty('machines.length', 1);
  });

  it('machines beyond the cpu limit fail when two processes request at the same time', async () => {
    const settings = someSettings([aPool({ limits: { ...LIMITS, cpu: 6 } })]);
    const testFleet = aTestFleet(settings);
    const other = aFleet({ ...testFleet, settings, seed: 9 });
    await Promise.all([
      testFleet.fleet.request('workers', 2, REASON),
      other.request('workers', 2, REASON),
    ]);
    await runPasses(testFleet, AFTER_NEWER_SETTINGS);
    const phases = await phasesIn(testFleet.store);
    expect(phases.toSorted()).toEqual(['failed', 'ready', 'ready', 'ready']);
  });

  it('a limit of 0 means no limit', async () => {
    const { fleet } = withLimits({});
    expect((await fleet.request('workers', 10, REASON)).machines).toHaveLength(10);
  });
});

describe('a machine whose VM was deleted by a person', () => {
  it('is not counted as ready, and the pool is scaled to what is requested', async () => {
    const testFleet = aTestFleet();
    const machine = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    testFleet.hypervisor.state.vms.delete(machine.placement!.vmId);
    expect((await testFleet.fleet.scaleTo('workers', 1, REASON)).machines).toHaveLength(1);
    await untilAtRest(testFleet.fleet, testFleet);
    const { pools } = await testFleet.fleet.status();
    expect(pools).toMatchObject([{ target: 1, ready: 1, missing: 1 }]);
    expect((await testFleet.fleet.scaleTo('workers', 1, REASON)).machines).toEqual([]);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
  });

  it('is not counted by a status that reads Proxmox, before any process has driven since', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    testFleet.hypervisor.state.vms.delete(machine!.placement!.vmId);
    const counted = async (readsProxmox: boolean) =>
      (await testFleet.fleet.status({ readsProxmox })).pools[0];
    expect(await counted(true)).toMatchObject({ target: 1, ready: 1, missing: 1, unread: {} });
    expect(await counted(false)).toMatchObject({ target: 2, ready: 2, missing: 0 });
    const error = new Unreachable('PVE_UNREACHABLE', 'no route to host');
    testFleet.hypervisor.failNext('view', error);
    expect(await counted(true)).toMatchObject({
      target: 2,
      ready: 2,
      unread: { memory: 'no route to host' },
    });
  });

  it('is not counted as present in a pool that was removed from the config', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 2, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    testFleet.hypervisor.state.vms.delete(machine!.placement!.vmId);
    const settings = someSettings([aPool({ name: 'others' })]);
    const fleet = aFleet({ ...testFleet, settings, seed: 9 });
    const { removedPools } = await fleet.status({ readsProxmox: true });
    expect(removedPools).toMatchObject([{ name: 'workers', missing: 1 }]);
    expect(removedPools[0]?.machines).toHaveLength(2);
  });

  it('ends after a while, also when no process runs for that long', async () => {
    const settings = someSettings();
    const testFleet = aTestFleet(settings);
    const machine = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    testFleet.hypervisor.state.vms.delete(machine.placement!.vmId);
    for (let run = 0; run < 4; run += 1) {
      const fleet = aFleet({ ...testFleet, settings, seed: 10 + run });
      await runPasses({ ...testFleet, fleet }, 2);
      await testFleet.clock.advance(settings.lostAfterMs / 3);
    }
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('ends after a while, also when commands that run for seconds are the only drivers', async () => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    testFleet.hypervisor.state.vms.delete(placement?.vmId ?? 0);
    for (let command = 0; command < 2; command += 1) {
      const finish = new AbortController();
      const { signal } = new AbortController();
      const driving = testFleet.fleet.runDriver({ signal, finish: finish.signal });
      await testFleet.clock.advance(5_000);
      finish.abort();
      await advanceUntilSettled(testFleet.clock, driving);
      await testFleet.clock.advance(10 * 60_000);
    }
    expect((await machinesIn(testFleet.store)).map(({ phase }) => phase)).not.toContain('ready');
  });

  it('is ready again when its VM is back', async () => {
    const testFleet = aTestFleet();
    const machine = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    const { vms } = testFleet.hypervisor.state;
    const vm = vms.get(machine.placement!.vmId)!;
    vms.delete(vm.vmId);
    await runPasses(testFleet, 2);
    expect((await testFleet.fleet.status()).pools).toMatchObject([{ ready: 0, missing: 1 }]);
    vms.set(vm.vmId, vm);
    await runPasses(testFleet, 2);
    expect((await testFleet.fleet.status()).pools).toMatchObject([{ ready: 1, missing: 0 }]);
  });
});
