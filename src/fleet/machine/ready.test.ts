// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { TaskFailed, Unauthorized, Unreachable } from '../../ports/errors.ts';
import type { HypervisorMethod } from '../../ports/fakes/memory-hypervisor.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import type { PoolSettings } from '../context/settings.ts';
import {
  aJoiningTestFleet,
  aReadyMachine,
  joiningSettings,
} from '../testing/joining-test-fleet.ts';
import { aPool, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  addressesInUse,
  aFleet,
  aTestFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  onePass,
  REASON,
  reachPhase,
  replaceVm,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('a ready machine whose VM is missing', () => {
  it('is gone after five minutes, and its seed and address are removed', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ network: STATIC_NETWORK })]));
    const refusal = new Unreachable('PVE_UNREACHABLE', 'connection refused');
    for (let n = 0; n < 3; n += 1) testFleet.hypervisor.failNext('deleteVolume', refusal);
    testFleet.hypervisor.onCall = ({ method }) => {
      if (method === 'deleteVolume') testFleet.hypervisor.state.vms.delete(1_250);
    };
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet, 30);
    testFleet.hypervisor.onCall = undefined;
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
    for (let minute = 0; minute < 8; minute += 1) {
      await testFleet.clock.advance(60_000);
      await onePass(testFleet.fleet, testFleet);
    }
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'gone' }]);
    expect(existingResources(testFleet.hypervisor)).toEqual({ vms: [], machines: [], isos: [] });
    expect(await addressesInUse(testFleet.store)).toEqual([]);
  });

  it('stays ready when its VM was missing only for a moment, twice', async () => {
    const testFleet = aTestFleet();
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const { vms } = testFleet.hypervisor.state;
    const [vm] = [...vms.values()].filter(({ vmId }) => vmId === 1_250);
    vm?.options.set('name', 'renamed-by-a-person');
    for (let time = 0; time < 2; time += 1) {
      vms.delete(1_250);
      await onePass(testFleet.fleet, testFleet);
      if (vm !== undefined) vms.set(1_250, vm);
      await onePass(testFleet.fleet, testFleet);
      await testFleet.clock.advance(10 * 60_000);
    }
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
  });
});

describe('a ready machine whose VM is stopped', () => {
  async function aStoppedMachine(onStopped: PoolSettings['onStopped'] = 'restart') {
    const settings = someSettings([aPool({ onStopped })]);
    const testFleet = aTestFleet(settings);
    const { id, placement } = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    const vm = testFleet.hypervisor.state.vms.get(placement?.vmId ?? 0);
    if (vm === undefined) throw new Error('the machine has no VM');
    vm.startedAt = undefined;
    testFleet.hypervisor.calls.length = 0;
    const callsOf = (method: HypervisorMethod) =>
      testFleet.hypervisor.calls.filter((call) => call.method === method);
    const entries = async () =>
      (await testFleet.store.journal.read()).filter(({ reason }) => reason === 'MachineStopped');
    return { testFleet, settings, id, vm, host: placement?.host ?? '', callsOf, entries };
  }

  it('is started again and reported once; running machines cost no request', async () => {
    const { testFleet, vm, callsOf, entries } = await aStoppedMachine();
    await runPasses(testFleet, 5);
    expect(vm.startedAt).toBeDefined();
    expect(callsOf('startVm')).toHaveLength(1);
    expect(await entries()).toHaveLength(1);
    testFleet.hypervisor.calls.length = 0;
    await runPasses(testFleet, 3);
    expect(testFleet.hypervisor.calls.map(({ method }) => method)).toEqual([
      'view',
      'view',
      'view',
    ]);
    vm.startedAt = undefined;
    await runPasses(testFleet, 5);
    expect(await entries()).toHaveLength(2);
  });

  it('is started again after its records were lost', async () => {
    const { testFleet, settings, id, vm } = await aStoppedMachine();
    const store = new MemoryStore(testFleet);
    const fleet = aFleet({ ...testFleet, store, settings, seed: 2 });
    await runPasses({ ...testFleet, fleet, store }, 5);
    expect(await machinesIn(store)).toMatchObject([{ id, phase: 'ready' }]);
    expect(vm.startedAt).toBeDefined();
  });

  it('is started with growing delays when it stops again and again', async () => {
    const { testFleet, vm, callsOf } = await aStoppedMachine();
    for (let pass = 0; pass < 1_200; pass += 1) {
      vm.startedAt = undefined;
      await onePass(testFleet.fleet, testFleet);
    }
    expect(callsOf('startVm').length).toBeGreaterThan(5);
    expect(callsOf('startVm').length).toBeLessThan(14);
  });

  it('is started with growing delays when its start fails', async () => {
    const { testFleet, callsOf } = await aStoppedMachine();
    for (let n = 0; n < 50; n += 1) {
      testFleet.hypervisor.failNextTask('start', new TaskFailed('TASK_FAILED', 'no bridge'));
    }
    await runPasses(testFleet, 600);
    expect(callsOf('startVm').length).toBeLessThan(12);
    const failures = (await testFleet.store.journal.read()).filter(
      ({ reason }) => reason === 'TASK_FAILED',
    );
    expect(failures.map(({ message }) => message)).toEqual(['no bridge']);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
  });

  it('is only reported with onStopped: ignore, and then costs no request', async () => {
    const { testFleet, vm, entries } = await aStoppedMachine('ignore');
    await runPasses(testFleet, 3);
    testFleet.hypervisor.calls.length = 0;
    await runPasses(testFleet, 3);
    expect(testFleet.hypervisor.calls.map(({ method }) => method)).toEqual([
      'view',
      'view',
      'view',
    ]);
    expect(await entries()).toHaveLength(1);
    expect(vm.startedAt).toBeUndefined();
  });

  it('loses its seed after it was adopted, and is only reported with onStopped: ignore', async () => {
    const { testFleet, settings, vm } = await aStoppedMachine('ignore');
    const store = new MemoryStore(testFleet);
    const fleet = aFleet({ ...testFleet, store, settings, seed: 2 });
    await runPasses({ ...testFleet, fleet, store }, 5);
    expect((await machinesIn(store))[0]?.seedVolume).toBeUndefined();
    testFleet.hypervisor.calls.length = 0;
    await runPasses({ ...testFleet, fleet, store }, 2);
    expect(testFleet.hypervisor.calls.map(({ method }) => method)).toEqual(['view', 'view']);
    expect(vm.startedAt).toBeUndefined();
  });

  it('is left alone if it was started since the view was read', async () => {
    const { testFleet, vm, callsOf, entries } = await aStoppedMachine('replace');
    testFleet.hypervisor.onCall = ({ method }) => {
      vm.startedAt = method === 'vmState' ? testFleet.clock.monotonic() : undefined;
    };
    await runPasses(testFleet, 3);
    expect(callsOf('vmState')).toHaveLength(3);
    expect(await entries()).toEqual([]);
  });

  it('is only reported if its pool is no longer in the config', async () => {
    const { testFleet, vm } = await aStoppedMachine('replace');
    const fleet = aFleet({ ...testFleet, settings: someSettings([]), seed: 2 });
    await runPasses({ ...testFleet, fleet }, 400);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
    expect(testFleet.hypervisor.state.vms.get(vm.vmId)?.startedAt).toBeUndefined();
    expect(await journalReasonsIn(testFleet.store)).toContain('MachineStopped');
  });

  it('is deleted with onStopped: replace once it has been stopped for a while', async () => {
    const { testFleet, entries } = await aStoppedMachine('replace');
    await runPasses(testFleet, 290);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
    expect(await entries()).toHaveLength(1);
    await runPasses(testFleet, 30);
    expect((await machinesIn(testFleet.store))[0]).toMatchObject({
      phase: 'gone',
      deletionReason: 'its VM is stopped',
    });
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
  });

  it.each(['restart', 'replace'] as const)(
    'is left alone while its host is down: %s',
    async (onStopped) => {
      const { testFleet, host, callsOf, entries } = await aStoppedMachine(onStopped);
      const { hypervisor } = testFleet;
      hypervisor.setOnline(host, false);
      const view = hypervisor.view.bind(hypervisor);
      // Proxmox may go on showing the last state of a VM on a host that is down.
      hypervisor.view = async (options) => {
        const seen = await view(options);
        return { ...seen, vms: seen.vms.map((vm) => ({ ...vm, power: 'stopped' as const })) };
      };
      await runPasses(testFleet, 400);
      expect([...callsOf('startVm'), ...callsOf('vmState')]).toEqual([]);
      expect(await entries()).toEqual([]);
      expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
    },
  );

  it('is left alone while its VM is locked, and started when the lock is removed', async () => {
    const { testFleet, vm, callsOf, entries } = await aStoppedMachine();
    vm.options.set('lock', 'backup');
    await runPasses(testFleet, 60);
    expect(callsOf('startVm')).toEqual([]);
    expect((await entries())[0]?.message).toContain("'backup'");
    vm.options.delete('lock');
    await runPasses(testFleet, 15);
    expect(callsOf('startVm')).toHaveLength(1);
  });

  it('is deleted, not started, when its marker says that its deletion began', async () => {
    const { testFleet, vm, callsOf } = await aStoppedMachine();
    vm.options.set('description', `${vm.options.get('description')} deleting=1700000000`);
    await untilAtRest(testFleet.fleet, testFleet);
    await runPasses(testFleet, 20);
    expect(callsOf('startVm')).toEqual([]);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
  });

  it('is not started when another VM got its id', async () => {
    const { testFleet, vm, callsOf } = await aStoppedMachine();
    replaceVm(testFleet, vm).startedAt = undefined;
    await runPasses(testFleet, 10);
    expect(callsOf('startVm')).toEqual([]);
  });
});

describe('a ready machine without a Node', () => {
  it('is reported at once after it was adopted, as journal entry and Event', async () => {
    const testFleet = aJoiningTestFleet();
    const { id, placement } = await aReadyMachine(testFleet);
    testFleet.guests.behaviour = { neverRegisters: true };
    testFleet.cluster.state.removeNode(placement.name);
    const store = new MemoryStore(testFleet);
    const fleet = aFleet({ ...testFleet, store, settings: joiningSettings(), seed: 2 });
    await runPasses({ ...testFleet, fleet, store }, 5);
    expect(await machinesIn(store)).toMatchObject([{ id, phase: 'ready' }]);
    const entries = (await store.journal.read()).filter(({ reason }) => reason === 'NodeMissing');
    expect(entries).toHaveLength(1);
    expect(testFleet.cluster.state.events).toContainEqual(
      expect.objectContaining({ type: 'Warning', reason: 'NodeMissing' }),
    );
  });

  it('is reported as soon as Kubernetes can be read, if it was adopted before', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    testFleet.guests.behaviour = { neverRegisters: true };
    testFleet.cluster.state.removeNode(placement.name);
    testFleet.cluster.disconnect();
    await testFleet.clock.advance(5 * 60_000);
    const store = new MemoryStore(testFleet);
    const fleet = aFleet({ ...testFleet, store, settings: joiningSettings(), seed: 2 });
    await runPasses({ ...testFleet, fleet, store }, 5);
    expect(await journalReasonsIn(store)).not.toContain('NodeMissing');
    testFleet.cluster.reconnect();
    await runPasses({ ...testFleet, fleet, store }, 2);
    expect(await journalReasonsIn(store)).toContain('NodeMissing');
  });

  it('is reported again when its Node came back and is missing again', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aReadyMachine(testFleet);
    for (let time = 0; time < 2; time += 1) {
      testFleet.guests.behaviour = { neverRegisters: true };
      testFleet.cluster.state.removeNode(placement.name);
      await runPasses(testFleet, 3);
      testFleet.guests.behaviour = {};
      await runPasses(testFleet, 3);
    }
    const reasons = await journalReasonsIn(testFleet.store);
    expect(reasons.filter((reason) => reason === 'NodeMissing')).toHaveLength(2);
  });
});

describe('a ready machine whose VM cannot be checked', () => {
  async function aRenamedMachine() {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    const vm = testFleet.hypervisor.state.vms.get(placement?.vmId ?? 0);
    // Another name than in the record makes every pass look at the VM.
    vm?.options.set('name', 'renamed-by-a-person');
    return { testFleet, vm };
  }

  it('is kept while the VM has the lock of a creation, for example of a restore in its place', async () => {
    const { testFleet, vm } = await aRenamedMachine();
    vm?.options.set('lock', 'create');
    for (let minute = 0; minute < 10; minute += 1) {
      await runPasses(testFleet, 2);
      await testFleet.clock.advance(60_000);
    }
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
    expect(await journalReasonsIn(testFleet.store)).not.toContain('MachineLost');
  });

  it('is kept, with the error recorded once, while the VM may not be read', async () => {
    const { testFleet } = await aRenamedMachine();
    const refusal = new Unauthorized('PERMISSION_MISSING', 'no VM.Audit');
    testFleet.hypervisor.vmConfig = () => Promise.reject(refusal);
    for (let minute = 0; minute < 10; minute += 1) {
      await runPasses(testFleet, 2);
      await testFleet.clock.advance(60_000);
    }
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
    const reasons = await journalReasonsIn(testFleet.store);
    expect(reasons.filter((reason) => reason === 'PERMISSION_MISSING')).toHaveLength(1);
  });
});

describe('a ready machine whose VM id belongs to another VM', () => {
  it('is recorded as lost with the reason after five minutes, and the other VM stays', async () => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    const { vmId = 0, host = '', name = '' } = placement ?? {};
    const { options } = replaceVm(testFleet, { vmId, host });
    await runPasses(testFleet, 2);
    await testFleet.clock.advance(5 * 60_000 - 3_000);
    await onePass(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'ready' }]);
    await runPasses(testFleet, 10);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'gone' }]);
    const recorded = await testFleet.store.journal.read();
    expect(recorded.filter(({ reason }) => reason === 'MachineLost')).toMatchObject([
      {
        kind: 'saw',
        message: expect.stringContaining(`${name}: its VM id belongs to another VM`),
      },
    ]);
    expect(options.size).toBe(3);
    expect(testFleet.hypervisor.state.vms.has(vmId)).toBe(true);
  });
});
