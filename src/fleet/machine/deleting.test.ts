// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine } from '../../model/machine.ts';
import { TaskFailed } from '../../ports/errors.ts';
import {
  aHost,
  aPool,
  aRegion,
  REGION,
  someSettings,
  templateSource,
} from '../testing/settings.ts';
import {
  aFleet,
  anUnrecordedClone,
  aTestFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  onePass,
  phasesIn,
  REASON,
  reachPhase,
  replaceVm,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('deleting: a VM or host that changes during the deletion', () => {
  it('does not destroy an unmanaged VM that got the VM id while the seed was being deleted', async () => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'booting');
    const { vmId = 0, host = '' } = placement ?? {};
    testFleet.hypervisor.onCall = ({ method }) => {
      if (method !== 'deleteVolume') return;
      testFleet.hypervisor.onCall = undefined;
      const options = new Map([['name', 'a-persons']]);
      testFleet.hypervisor.state.vms.set(vmId, {
        vmId,
        host,
        options,
        revision: 1,
        startedAt: undefined,
      });
    };
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(testFleet.hypervisor.onCall).toBeUndefined();
    expect(existingResources(testFleet.hypervisor)).toMatchObject({
      vms: [vmId],
      machines: ['none'],
      isos: [],
    });
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'gone' }]);
  });

  it('follows a VM that HA moved away from a host that went offline during a task', async () => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'ready');
    const { vmId = 0, host = '' } = placement ?? {};
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    while ((await machinesIn(testFleet.store))[0]?.task === undefined) {
      await onePass(testFleet.fleet, testFleet);
    }
    testFleet.hypervisor.setOnline(host, false);
    testFleet.hypervisor.move(vmId, 'pve3');
    const vm = testFleet.hypervisor.state.vms.get(vmId);
    if (vm !== undefined) vm.startedAt = testFleet.clock.monotonic();
    await untilAtRest(testFleet.fleet, testFleet, 200);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'gone' }]);
    expect(existingResources(testFleet.hypervisor)).toMatchObject({ vms: [], isos: [] });
  });

  it('ends when the host was removed from the Proxmox cluster together with its tasks and VMs', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'ready');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    while ((await machinesIn(testFleet.store))[0]?.task === undefined) {
      await onePass(testFleet.fleet, testFleet);
    }
    const [{ placement } = { placement: undefined }] = await machinesIn(testFleet.store);
    const { vmId = 0, host = '' } = placement ?? {};
    testFleet.hypervisor.state.vms.delete(vmId);
    const at = testFleet.hypervisor.state.hosts.findIndex(({ name }) => name === host);
    testFleet.hypervisor.state.hosts.splice(at, 1);
    await untilAtRest(testFleet.fleet, testFleet, 200);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ phase: 'gone' }]);
  });
});

describe('deleting: whose VM it is', () => {
  it('does not destroy the VM of another machine of ours that has the VM id', async () => {
    const testFleet = aTestFleet();
    const { id, placement } = await reachPhase(testFleet, 'ready');
    await untilAtRest(testFleet.fleet, testFleet);
    const vm = testFleet.hypervisor.state.vms.get(placement?.vmId ?? 0);
    const other = '0a1b2c3d-2222-4000-8000-000000000002';
    const description = vm?.options.get('description') ?? '';
    vm?.options.set('description', description.replace(id, other)).set('smbios1', `uuid=${other}`);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await runPasses(testFleet, 20);
    expect(existingResources(testFleet.hypervisor).machines).toEqual([other]);
    expect(vm?.options.get('description')).not.toContain('deleting=');
    expect((await machinesIn(testFleet.store)).find((one) => one.id === id)?.phase).toBe('gone');
  });

  it('does not mark a VM that a person put under the id after the ownership check', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'ready');
    let options: ReadonlyMap<string, string> | undefined;
    testFleet.hypervisor.onCall = ({ method, vmId = 0, host = '' }) => {
      if (method !== 'setDescription' || options !== undefined) return;
      ({ options } = replaceVm(testFleet, { vmId, host }));
    };
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(options?.has('description')).toBe(false);
    expect(existingResources(testFleet.hypervisor).machines).toEqual(['none']);
  });
});

describe('deleting: tasks that no record names', () => {
  it('waits for a clone of its template that may still create its VM', async () => {
    const testFleet = aTestFleet(someSettings([aPool({ source: templateSource() })]));
    const { hypervisor, fleet, store } = testFleet;
    const { end } = await anUnrecordedClone(testFleet);
    await fleet.scaleTo('workers', 0, REASON);
    await runPasses(testFleet, 10);
    expect(await phasesIn(store)).toEqual(['deleting']);
    end();
    await untilAtRest(fleet, testFleet);
    expect(await phasesIn(store)).toEqual(['gone']);
    expect(hypervisor.calls.filter(({ method }) => method === 'cloneVm')).toHaveLength(1);
  });

  it('waits for an upload that would restore the seed after its deletion', async () => {
    const testFleet = aTestFleet();
    const { hypervisor, fleet, store } = testFleet;
    hypervisor.dropResponse('uploadIso');
    await fleet.scaleTo('workers', 1, REASON);
    const isUploading = () => hypervisor.calls.some(({ method }) => method === 'uploadIso');
    while (!isUploading()) await onePass(fleet, testFleet);
    await fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(fleet, testFleet);
    expect(await phasesIn(store)).toEqual(['gone']);
    expect(existingResources(hypervisor)).toMatchObject({ vms: [], isos: [] });
  });
});

describe('deleting: the host that deletes the seed', () => {
  /** The hosts that were asked to delete the seed of a machine whose VM is gone and whose host changes as given. */
  async function deletedBy(
    isShared: boolean,
    change: (testFleet: TestFleet, host: string) => void,
  ) {
    const testFleet = aTestFleet();
    const { hypervisor, fleet } = testFleet;
    const hosts = hypervisor.state.hosts.map((host) => ({
      ...host,
      storages: host.storages.map((one) =>
        one.name === 'seeds' ? { ...one, shared: isShared } : one,
      ),
    }));
    hypervisor.state.hosts.splice(0, 3, ...hosts);
    const { placement } = await reachPhase(testFleet, 'booting');
    const { vmId = 0, host = '' } = placement ?? {};
    await fleet.scaleTo('workers', 0, REASON);
    hypervisor.state.vms.delete(vmId);
    change(testFleet, host);
    await runPasses(testFleet, 10);
    const calls = hypervisor.calls.filter(({ method }) => method === 'deleteVolume');
    return { own: host, hosts: [...new Set(calls.map((call) => call.host))] };
  }
  const takeDown = ({ hypervisor }: TestFleet, host: string) => hypervisor.setOnline(host, false);
  const remove = ({ hypervisor }: TestFleet, host: string) => {
    const at = hypervisor.state.hosts.findIndex(({ name }) => name === host);
    hypervisor.state.hosts.splice(at, 1);
  };

  it('is the own one while that is online', async () => {
    const { own, hosts } = await deletedBy(true, () => undefined);
    expect(hosts).toEqual([own]);
  });

  it('is another one if the own one was removed from the cluster, also without a shared storage', async () => {
    const { own, hosts } = await deletedBy(false, remove);
    expect(hosts).toHaveLength(1);
    expect(hosts).not.toContain(own);
  });

  it('is no other one while the own one is down and the storage is not shared', async () => {
    const { own, hosts } = await deletedBy(false, takeDown);
    expect(hosts.filter((host) => host !== own)).toEqual([]);
  });

  it('is one that is online and has the storage', async () => {
    const { own, hosts } = await deletedBy(true, (testFleet, host) => {
      remove(testFleet, host);
      const [other] = testFleet.hypervisor.state.hosts;
      const storages = other!.storages.map((one) => ({ ...one, active: one.name !== 'seeds' }));
      testFleet.hypervisor.state.hosts.splice(0, 1, { ...other!, storages });
    });
    const last = ['pve1', 'pve2', 'pve3'].filter((host) => host !== own).at(-1);
    expect(hosts).toEqual([last]);
  });
});

describe('deleting: a VM that keeps the lock of its creation', () => {
  async function aLockedVm() {
    const testFleet = aTestFleet();
    const { id, placement } = await reachPhase(testFleet, 'ready');
    const { vmId = 0, host = '' } = placement ?? {};
    testFleet.hypervisor.state.vms.get(vmId)?.options.set('lock', 'clone');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    const unlock = () => testFleet.hypervisor.state.vms.get(vmId)?.options.delete('lock');
    return { testFleet, id, vmId, host, unlock };
  }

  it('is reported once and destroyed after the lock was removed', async () => {
    const { testFleet, id, vmId, host, unlock } = await aLockedVm();
    await runPasses(testFleet, 30);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([vmId]);
    const recorded = (await testFleet.store.journal.read()).filter(
      ({ reason }) => reason === 'HalfMadeVm',
    );
    expect(recorded).toMatchObject([
      { kind: 'failed', subject: { pool: 'workers', machine: id, host } },
    ]);
    expect(recorded[0]?.message).toContain(`qm unlock ${vmId}`);
    unlock();
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
  });

  it.each(['clone', 'create'] as const)(
    'is not reported while a %s task on its host may still create it',
    async (kind) => {
      const { testFleet, vmId, host, unlock } = await aLockedVm();
      const { state } = testFleet.hypervisor;
      const runningTasks = state.runningTasks.bind(state);
      const running = { upid: 'running', kind, host, subject: kind === 'create' ? vmId : 9_001 };
      state.runningTasks = (at, of) =>
        at === host && of === kind ? [running] : runningTasks(at, of);
      await runPasses(testFleet, 30);
      expect(existingResources(testFleet.hypervisor).vms).toEqual([vmId]);
      expect(await journalReasonsIn(testFleet.store)).not.toContain('HalfMadeVm');
      state.runningTasks = runningTasks;
      unlock();
      await untilAtRest(testFleet.fleet, testFleet);
      expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    },
  );
});

describe('deleting: how a VM is stopped', () => {
  /** The calls that stop or destroy VMs, in their order. */
  function stopsOf({ hypervisor }: TestFleet): readonly string[] {
    const stops = ['shutdownVm', 'stopVm', 'destroyVm'];
    return hypervisor.calls.map(({ method }) => method).filter((one) => stops.includes(one));
  }

  it('is shut down, and stopped if it does not shut down', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'ready');
    testFleet.hypervisor.failNextTask('shutdown', new TaskFailed('TASK_FAILED', 'got timeout'));
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(stopsOf(testFleet)).toEqual(['shutdownVm', 'stopVm', 'destroyVm']);
  });

  it('is stopped after three calls for its shutdown have failed', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'ready');
    const refusal = new TaskFailed('TASK_FAILED', 'no space left for the task');
    for (let at = 0; at < 3; at += 1) testFleet.hypervisor.failNext('shutdownVm', refusal);
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const calls = ['shutdownVm', 'shutdownVm', 'shutdownVm', 'stopVm', 'destroyVm'];
    expect(stopsOf(testFleet)).toEqual(calls);
  });

  it('is stopped without a shutdown if its pool says so', async () => {
    const deletion = { mode: 'stop', shutdownTimeoutMs: 60_000 } as const;
    const testFleet = aTestFleet(someSettings([aPool({ deletion })]));
    await reachPhase(testFleet, 'ready');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(stopsOf(testFleet)).toEqual(['stopVm', 'destroyVm']);
  });

  it('is stopped without a shutdown if its pool is no longer in the config', async () => {
    const testFleet = aTestFleet();
    const { id } = await reachPhase(testFleet, 'ready');
    const settings = someSettings([aPool({ name: 'another' })]);
    const fleet = aFleet({ ...testFleet, settings, seed: 2 });
    await fleet.remove([id], REASON);
    await untilAtRest(fleet, testFleet);
    expect(stopsOf(testFleet)).toEqual(['stopVm', 'destroyVm']);
  });
});

describe('deleting: what is recorded', () => {
  it('records the deleted machine with the reason of its deletion', async () => {
    const testFleet = aTestFleet();
    const { id, placement } = await reachPhase(testFleet, 'ready');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const recorded = (await testFleet.store.journal.read()).filter(
      ({ reason }) => reason === 'MachineGone',
    );
    const message = `${placement?.name} was deleted: test: requested by a test`;
    expect(recorded).toMatchObject([{ kind: 'did', subject: { machine: id }, message }]);
  });

  it.each([
    ['the lines of the log', ['destroy', "WARN: Could not remove disk 'vm-1250-disk-0'", 'OK']],
    ['the task if its log has no such line', ['destroy']],
  ])('records a destruction with warnings with %s', async (_what, log) => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'ready');
    const { vmId = 0, host = '' } = placement ?? {};
    const { state } = testFleet.hypervisor;
    const taskStatus = state.taskStatus.bind(state);
    state.taskStatus = (task) => {
      const status = taskStatus(task);
      const isDestroy = task.kind === 'destroy' && status.state === 'ended';
      return isDestroy ? { ...status, warnings: 2 } : status;
    };
    state.log = () => log;
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const recorded = (await testFleet.store.journal.read()).filter(
      ({ reason }) => reason === 'DestroyedWithWarnings',
    );
    expect(recorded).toMatchObject([{ kind: 'saw', numbers: { vmId, warnings: 2 } }]);
    const text = log.find((line) => line.startsWith('WARN')) ?? 'task-';
    expect(recorded[0]?.message).toContain(`on ${host} with 2 warnings`);
    expect(recorded[0]?.message).toContain(`gone: ${text}`);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
  });

  it('records the warnings of a destruction also if its log cannot be read', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'ready');
    const { state } = testFleet.hypervisor;
    const taskStatus = state.taskStatus.bind(state);
    state.taskStatus = (task) => {
      const status = taskStatus(task);
      return status.state === 'ended' ? { ...status, warnings: 1 } : status;
    };
    testFleet.hypervisor.failNext('taskLog', new TaskFailed('TASK_FAILED', 'no log'));
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['gone']);
    const reasons = await journalReasonsIn(testFleet.store);
    expect(reasons.filter((reason) => reason === 'DestroyedWithWarnings')).toHaveLength(1);
  });
});

describe('deleting: many machines at once', () => {
  const limits = { createsPerHost: 20, createsPerStorage: 20 };
  const pool = aPool({ limits: { ...aPool().limits, min: 0, max: 20 } });
  const shared = aHost('pve1').storages.map((one) =>
    one.name === 'local-lvm' ? { ...one, shared: true } : one,
  );

  /** Scales to twelve and then to none, and returns the maximum of destroy tasks at the same time. */
  async function deleteTwelve(
    testFleet: TestFleet,
    countOf: (running: (host: string) => number) => number,
  ) {
    const { hypervisor, fleet, store, clock } = testFleet;
    await fleet.scaleTo('workers', 12, REASON);
    await untilAtRest(fleet, testFleet);
    await fleet.scaleTo('workers', 0, REASON);
    let most = 0;
    hypervisor.onCall = () => {
      hypervisor.state.finishDueTasks(clock.monotonic());
      const running = (host: string) => hypervisor.state.runningTasks(host, 'destroy').length;
      most = Math.max(most, countOf(running));
    };
    await untilAtRest(fleet, testFleet);
    expect(new Set(await phasesIn(store))).toEqual(new Set(['gone']));
    return most;
  }

  it('destroys at most deletesPerHost VMs of a host at the same time', async () => {
    const region = aRegion({ limits: { ...limits, deletesPerHost: 3, deletesPerStorage: 20 } });
    const testFleet = aTestFleet(someSettings([pool], { regions: { [REGION]: region } }));
    testFleet.hypervisor.setOnline('pve2', false);
    testFleet.hypervisor.setOnline('pve3', false);
    expect(await deleteTwelve(testFleet, (running) => running('pve1'))).toBe(3);
  });

  it('destroys at most deletesPerStorage VMs of a shared storage at the same time', async () => {
    const region = aRegion({ limits: { ...limits, deletesPerHost: 20, deletesPerStorage: 2 } });
    const testFleet = aTestFleet(someSettings([pool], { regions: { [REGION]: region } }));
    const { hosts } = testFleet.hypervisor.state;
    hosts.splice(0, 3, ...hosts.map((host) => ({ ...host, storages: shared })));
    const all = (running: (host: string) => number) =>
      ['pve1', 'pve2', 'pve3'].reduce((sum, host) => sum + running(host), 0);
    expect(await deleteTwelve(testFleet, all)).toBe(2);
  });

  it('costs no request for a machine that waits', async () => {
    const region = aRegion({ limits: { ...limits, deletesPerHost: 1, deletesPerStorage: 1 } });
    const testFleet = aTestFleet(someSettings([pool], { regions: { [REGION]: region } }));
    testFleet.hypervisor.setOnline('pve2', false);
    testFleet.hypervisor.setOnline('pve3', false);
    await testFleet.fleet.scaleTo('workers', 12, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    testFleet.hypervisor.calls.length = 0;
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const reads = testFleet.hypervisor.calls.filter(({ method }) => method === 'vmConfig');
    expect(reads.length).toBeLessThan(12 * 8);
  });

  it('a destroy task on a host that went down does not delay deletions on other hosts', async () => {
    const region = aRegion({ limits: { ...limits, deletesPerHost: 1, deletesPerStorage: 1 } });
    const testFleet = aTestFleet(someSettings([pool], { regions: { [REGION]: region } }));
    const { hypervisor, fleet, store } = testFleet;
    const { hosts } = hypervisor.state;
    hosts.splice(0, 3, ...hosts.map((host) => ({ ...host, storages: shared })));
    await fleet.scaleTo('workers', 6, REASON);
    await untilAtRest(fleet, testFleet);
    await fleet.scaleTo('workers', 0, REASON);
    const isDestroyed = (one: Machine) => one.task?.kind === 'destroy';
    while (!(await machinesIn(store)).some(isDestroyed)) await onePass(fleet, testFleet);
    const down = (await machinesIn(store)).find(isDestroyed)?.placement?.host ?? '';
    hypervisor.setOnline(down, false);
    await runPasses(testFleet, 60);
    const left = (await machinesIn(store)).filter(({ phase }) => phase !== 'gone');
    expect(new Set(left.map(({ placement }) => placement?.host))).toEqual(new Set([down]));
    hypervisor.setOnline(down, true);
    await untilAtRest(fleet, testFleet);
    expect(existingResources(hypervisor).vms).toEqual([]);
  });
});
