// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine } from '../../model/machine.ts';
import { readMarker } from '../../model/marker.ts';
import type { VmRequest } from '../../model/role.ts';
import { TaskFailed, Unauthorized } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { MemoryHypervisor } from '../../ports/fakes/memory-hypervisor.ts';
import { MemoryStore, SimulatedCrash } from '../../ports/fakes/memory-store.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { createFleet, type Fleet } from '../fleet.ts';
import type { VmsRequest } from '../requests/fleet-client.ts';
import { CrashingProcess, type CrashPoint } from '../testing/crashing-process.ts';
import { aHost, aPool, aRegion, REGION, someSettings, someVms } from '../testing/settings.ts';
import {
  addressesInUse,
  aFleet,
  aTestFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  REASON,
  replaceVm,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

const GIB = 2 ** 30;
const SMALL = { cpu: 1, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };

function workers(count: number, vm: Partial<VmRequest> = {}): VmsRequest {
  const from = { kind: 'template', template: 'base', clone: 'full' } as const;
  return { ...REASON, role: 'worker', count, size: SMALL, vm: { from, ...vm } };
}

async function create(testFleet: TestFleet, request: VmsRequest): Promise<readonly Machine[]> {
  const { machines } = await testFleet.fleet.requestVms(request);
  await untilAtRest(testFleet.fleet, testFleet, 60);
  const all = await machinesIn(testFleet.store);
  return machines.flatMap((id) => all.find((machine) => machine.id === id) ?? []);
}

function namesOf(machines: readonly Machine[]): readonly string[] {
  return machines.map(({ placement }) => placement?.name ?? '-').sort();
}

function countByHost(machines: readonly Machine[]) {
  return Object.fromEntries(
    [...Map.groupBy(machines, ({ placement }) => placement?.host)].map(([host, own]) => [
      host,
      own.length,
    ]),
  );
}

describe('hand-made VMs', () => {
  it('have the next free number of their role as name, and the role in their marker', async () => {
    const testFleet = aTestFleet(someSettings([]));
    await create(testFleet, workers(2));
    await create(testFleet, { ...workers(1), role: 'master' });
    const all = await machinesIn(testFleet.store);
    expect(namesOf(all)).toEqual(['k8s-master-1', 'k8s-worker-1', 'k8s-worker-2']);
    expect(all.map(({ phase }) => phase)).toEqual(['ready', 'ready', 'ready']);
    const master = all.find(({ pool }) => pool === 'role:master');
    const vm = testFleet.hypervisor.state.vms.get(master?.placement?.vmId ?? 0);
    const description = vm?.options.get('description') ?? '';
    expect(description).toContain(' role=master ');
    expect(description).not.toContain('pool=');
    expect(vm?.options.get('tags')).toContain('role-master');
  });

  it('reuse the number of a deleted VM', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const [first] = await create(testFleet, workers(2));
    await testFleet.fleet.remove(first === undefined ? [] : [first.id], REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(namesOf(await create(testFleet, workers(1)))).toEqual(namesOf(first ? [first] : []));
  });

  it('get distinct names and ids when two processes request five each', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const other = aFleet({ ...testFleet, settings: someSettings([]), seed: 9 });
    await Promise.all([
      testFleet.fleet.requestVms(workers(5)),
      other.requestVms({ ...workers(5), by: 'another shell' }),
    ]);
    await untilAtRest(other, testFleet);
    const all = await machinesIn(testFleet.store);
    expect(all.map(({ phase }) => phase)).toEqual(Array.from({ length: 10 }, () => 'ready'));
    expect(new Set(namesOf(all)).size).toBe(10);
    expect(new Set(all.map(({ placement }) => placement?.vmId)).size).toBe(10);
    expect(Object.values(countByHost(all)).sort()).toEqual([3, 3, 4]);
  });

  it('are balanced by the number of VMs over all hosts of all regions', async () => {
    const testFleet = aTestFleet();
    const other = new MemoryHypervisor({
      region: 'other',
      clock: testFleet.clock,
      random: new SeededRandom(6),
      hosts: [aHost('alone', { region: 'other' })],
      taskMs: 1_500,
      bootMs: 3_000,
    });
    for (const [at, host] of ['pve1', 'pve1', 'pve2', 'pve2', 'pve3'].entries()) {
      replaceVm(testFleet, { vmId: 200 + at, host });
    }
    const fleet = createFleet({
      clock: testFleet.clock,
      store: testFleet.store,
      hypervisors: new Map([
        [REGION, testFleet.hypervisor],
        ['other', other],
      ]),
      random: new SeededRandom(1),
      settings: someSettings([], {
        regions: {
          [REGION]: aRegion(),
          other: aRegion({ name: 'other', vmIds: { from: 500, to: 600 } }),
        },
        vms: someVms({ regions: [REGION, 'other'] }),
      }),
    });
    await fleet.requestVms(workers(4, { from: { kind: 'image', image: 'noble' } }));
    await untilAtRest(fleet, testFleet);
    const all = await machinesIn(testFleet.store);
    expect(countByHost(all)).toEqual({ alone: 2, pve3: 1, pve1: 1 });
    expect(namesOf(all)).toEqual(['k8s-worker-1', 'k8s-worker-2', 'k8s-worker-3', 'k8s-worker-4']);
  });

  it('use the placement strategy and the region of the request', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const all = await create(testFleet, workers(3, { strategy: 'pack', regions: [REGION] }));
    expect(countByHost(all)).toEqual({ pve1: 3 });
  });

  it('count for no minimum and no limit of a pool', async () => {
    const pool = aPool({ limits: { min: 1, max: 1, cpu: 0, memoryBytes: 0 } });
    const testFleet = aTestFleet(someSettings([pool]));
    await create(testFleet, workers(2));
    const { pools, removedPools } = await testFleet.fleet.status();
    expect(pools[0]).toMatchObject({ target: 1, ready: 1 });
    expect(removedPools).toEqual([]);
    expect(await testFleet.fleet.orphans()).toEqual([]);
    expect(await machinesIn(testFleet.store)).toHaveLength(3);
  });

  it('are created with the VM id of the request, or fail when it is taken', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const [first] = await create(testFleet, workers(1, { vmId: 777 }));
    expect(first).toMatchObject({ phase: 'ready', placement: { vmId: 777 } });
    const [second] = await create(testFleet, workers(1, { vmId: 777 }));
    expect(second).toMatchObject({ phase: 'failed', failure: { code: 'VM_ID_TAKEN' } });
    expect(existingResources(testFleet.hypervisor).vms).toEqual([777]);
  });

  it('fail when the id of the request is taken between placement and creation', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const cloneVm = testFleet.hypervisor.cloneVm.bind(testFleet.hypervisor);
    testFleet.hypervisor.cloneVm = (order, options) => {
      replaceVm(testFleet, { vmId: 777, host: 'pve2' });
      return cloneVm(order, options);
    };
    const [machine] = await create(testFleet, workers(1, { vmId: 777 }));
    expect(machine).toMatchObject({ phase: 'failed', failure: { code: 'VM_ID_TAKEN' } });
    expect(testFleet.hypervisor.state.vms.get(777)?.options.get('name')).toBe('a-persons');
  });

  it('get the static address of the request, which no other machine gets', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const network = {
      kind: 'static',
      address: '10.0.0.5/24',
      gateway: '10.0.0.1',
      dns: ['10.0.0.1'],
    } as const;
    const [first] = await create(testFleet, workers(1, { network }));
    expect(first?.placement?.addresses).toEqual(['10.0.0.5/24']);
    expect(await addressesInUse(testFleet.store)).toEqual(['10.0.0.5']);
    const [second] = await create(testFleet, workers(1, { network }));
    expect(second).toMatchObject({ phase: 'failed', failure: { code: 'NO_ADDRESS_FREE' } });
  });

  it('fail at once when no host fits, without a back-off for the next request', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const [large] = await create(testFleet, {
      ...workers(1),
      size: { ...SMALL, memoryBytes: 900 * GIB },
    });
    expect(large).toMatchObject({ phase: 'failed', failure: { code: 'NO_HOST_FITS' } });
    const [small] = await create(testFleet, workers(1));
    expect(small?.phase).toBe('ready');
  });

  it('wait for a host that is slow to report its storages when no other host fits', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const { hypervisor, fleet, clock, store } = testFleet;
    for (const [at, host] of hypervisor.state.hosts.entries()) {
      if (host.name !== 'pve3') hypervisor.state.hosts[at] = { ...host, memoryBytes: GIB };
    }
    const storageSpace = hypervisor.storageSpace.bind(hypervisor);
    hypervisor.storageSpace = async (host, options) => {
      if (host === 'pve3') await clock.sleep(5_000);
      return storageSpace(host, options);
    };
    await fleet.requestVms(workers(1));
    const stop = new AbortController();
    const driving = fleet.runDriver({ signal: stop.signal });
    for (let second = 0; second < 60; second += 1) await clock.advance(1_000);
    stop.abort();
    await advanceUntilSettled(clock, driving);
    expect(await machinesIn(store)).toMatchObject([
      { phase: 'ready', placement: { host: 'pve3' } },
    ]);
  });

  it('fail when the config has no such image', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const from = { kind: 'image', image: 'unknown' } as const;
    const [machine] = await create(testFleet, workers(1, { from }));
    expect(machine).toMatchObject({ phase: 'failed', failure: { code: 'CONFIG_INVALID' } });
  });

  it('are planned without a change, each beside the ones before', async () => {
    const testFleet = aTestFleet(someSettings([]));
    await create(testFleet, workers(1));
    const planned = await testFleet.fleet.planVms(workers(3));
    expect(planned.map(({ name, host, vmId }) => [name, host, vmId])).toEqual([
      ['k8s-worker-2', 'pve2', 1251],
      ['k8s-worker-3', 'pve3', 1252],
      ['k8s-worker-4', 'pve1', 1253],
    ]);
    expect(await machinesIn(testFleet.store)).toHaveLength(1);
    const created = await create(testFleet, workers(3));
    expect(created.map(({ placement }) => placement?.host).sort()).toEqual([
      'pve1',
      'pve2',
      'pve3',
    ]);
  });

  it('are not planned where no host fits', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const large = { ...workers(1), size: { ...SMALL, memoryBytes: 900 * GIB } };
    await expect(testFleet.fleet.planVms(large)).rejects.toMatchObject({ code: 'NO_HOST_FITS' });
  });

  it('stay when their guest agent never answers', async () => {
    const testFleet = aTestFleet(someSettings([]));
    testFleet.hypervisor.guestIsUp = () => Promise.resolve(false);
    await testFleet.fleet.requestVms(workers(1));
    for (let hour = 0; hour < 3; hour += 1) {
      await runPasses(testFleet, 20);
      await testFleet.clock.advance(3_600_000);
    }
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'booting' }]);
    expect(existingResources(testFleet.hypervisor).vms).toHaveLength(1);
  });

  it.each([
    ['cannot be started again', 'startVm', new TaskFailed('TASK_FAILED', 'no memory')],
    ['cannot be queried', 'guestIsUp', new Unauthorized('PERMISSION_MISSING', 'no privilege')],
  ] as const)('stay when they have run without an agent and %s', async (_, method, error) => {
    const testFleet = aTestFleet(someSettings([]));
    const { hypervisor, clock } = testFleet;
    const guestIsUp = hypervisor.guestIsUp.bind(hypervisor);
    hypervisor.guestIsUp = (...args) => guestIsUp(...args).then(() => false);
    await testFleet.fleet.requestVms(workers(1));
    await runPasses(testFleet, 60);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'booting' }]);
    for (const vm of hypervisor.state.vms.values()) vm.startedAt = undefined;
    for (let count = 0; count < 4; count += 1) hypervisor.failNext(method, error);
    for (let hour = 0; hour < 6; hour += 1) {
      await runPasses(testFleet, 20);
      await clock.advance(3_600_000);
    }
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'booting' }]);
    expect(existingResources(hypervisor).vms).toHaveLength(1);
  });

  it('stay stopped when a person stops them', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const [machine] = await create(testFleet, workers(1));
    const vm = testFleet.hypervisor.state.vms.get(machine?.placement?.vmId ?? 0);
    if (vm !== undefined) vm.startedAt = undefined;
    await testFleet.clock.advance(3_600_000);
    await runPasses(testFleet, 30);
    expect(vm?.startedAt).toBeUndefined();
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
  });

  it('are kept in the records while their VM is missing, and are ours when it comes back', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const [machine] = await create(testFleet, workers(1));
    const vmId = machine?.placement?.vmId ?? 0;
    const vm = testFleet.hypervisor.state.vms.get(vmId);
    testFleet.hypervisor.state.vms.delete(vmId);
    for (let hour = 0; hour < 3; hour += 1) {
      await runPasses(testFleet, 20);
      await testFleet.clock.advance(3_600_000);
    }
    const [kept] = await machinesIn(testFleet.store);
    expect(kept).toMatchObject({ phase: 'ready', missingSince: expect.any(Number) });
    expect(await journalReasonsIn(testFleet.store)).toContain('VmMissing');
    if (vm !== undefined) testFleet.hypervisor.state.vms.set(vmId, vm);
    await runPasses(testFleet, 20);
    expect((await machinesIn(testFleet.store))[0]?.missingSince).toBeUndefined();
    expect(existingResources(testFleet.hypervisor).vms).toEqual([vmId]);
  });

  it('are adopted with their role after the records were lost', async () => {
    const testFleet = aTestFleet(someSettings([]));
    await create(testFleet, workers(2));
    const fresh = { ...testFleet, store: new MemoryStore({ clock: testFleet.clock }) };
    const fleet = aFleet({ ...fresh, settings: someSettings([]), seed: 4 });
    await untilAtRest(fleet, fresh);
    const adopted = await machinesIn(fresh.store);
    expect(namesOf(adopted)).toEqual(['k8s-worker-1', 'k8s-worker-2']);
    expect(adopted.map(({ pool, phase }) => [pool, phase])).toEqual([
      ['role:worker', 'ready'],
      ['role:worker', 'ready'],
    ]);
    await fleet.remove(
      adopted.map(({ id }) => id),
      REASON,
    );
    await untilAtRest(fleet, fresh);
    expect(existingResources(fresh.hypervisor)).toEqual({ vms: [], machines: [], isos: [] });
  });
});

async function runUntilCrash(testFleet: TestFleet, crashPoint: CrashPoint) {
  const process = new CrashingProcess(testFleet.store, testFleet.hypervisor, crashPoint);
  const { store, hypervisor } = process;
  const settings = someSettings([]);
  const fleet: Fleet = aFleet({ ...testFleet, store, hypervisor, settings, seed: 2 });
  await untilAtRest(fleet, { store, clock: testFleet.clock }).catch((error: unknown) => {
    if (!(error instanceof SimulatedCrash)) throw error;
  });
  return process;
}

describe('a crash while hand-made VMs are created', () => {
  it('leaves exactly the requested VMs when the next process continues', async () => {
    const prepare = async () => {
      const testFleet = aTestFleet(someSettings([]));
      await testFleet.fleet.requestVms(workers(1));
      return testFleet;
    };
    const { writes, calls } = await runUntilCrash(await prepare(), { kind: 'never' });
    expect(writes).toBeGreaterThan(5);
    const crashPoints: CrashPoint[] = [
      ...Array.from({ length: writes }, (_, at) => ({ kind: 'write', number: at + 1 }) as const),
      ...calls.flatMap((_, at) => [
        { kind: 'unseen', number: at + 1 } as const,
        { kind: 'seen', number: at + 1 } as const,
      ]),
    ];
    for (const crashPoint of crashPoints) {
      const testFleet = await prepare();
      await runUntilCrash(testFleet, crashPoint);
      const fleet = aFleet({ ...testFleet, settings: someSettings([]), seed: 3 });
      await untilAtRest(fleet, testFleet);
      const note = JSON.stringify(crashPoint);
      const all = await machinesIn(testFleet.store);
      expect(namesOf(all), note).toEqual(['k8s-worker-1']);
      const { vms, machines, isos } = existingResources(testFleet.hypervisor);
      expect(vms, note).toHaveLength(1);
      expect(machines.toSorted(), note).toEqual(all.map(({ id }) => id).sort());
      expect(isos, note).toEqual([]);
    }
  });
});

describe('the marker of a hand-made VM', () => {
  it('is not damaged by a role, and refuses a pool beside it', async () => {
    const testFleet = aTestFleet(someSettings([]));
    const [machine] = await create(testFleet, workers(1));
    const vm = testFleet.hypervisor.state.vms.get(machine?.placement?.vmId ?? 0);
    const description = vm?.options.get('description') ?? '';
    expect(readMarker(description)).toMatchObject({
      kind: 'marked',
      marker: { pool: 'role:worker' },
    });
    expect(readMarker(`${description} pool=small`)).toEqual({
      kind: 'damaged',
      problem: 'marker has a pool and a role',
    });
  });
});
