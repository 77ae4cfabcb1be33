// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  Bug,
  Conflict,
  InvalidConfig,
  NoCapacity,
  type PvescalerError,
  TaskFailed,
  TimedOut,
  Unauthorized,
  Unreachable,
} from '../../ports/errors.ts';
import type { HypervisorMethod } from '../../ports/fakes/memory-hypervisor.ts';
import {
  aJoiningMachine,
  aJoiningPool,
  aJoiningTestFleet,
  aReadyMachine,
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
  phasesIn,
  REASON,
  reachPhase,
  runPasses,
  type TestFleet,
  untilAtRest,
} from '../testing/test-fleet.ts';

describe('reconcileMachine: errors during provisioning', () => {
  it('a machine that is not ready within the provision timeout fails, and its VM, seed and address are removed', async () => {
    const pool = aPool({ provisionTimeoutMs: 120_000, network: STATIC_NETWORK });
    const testFleet = aTestFleet(someSettings([pool]));
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    // The guest agent never answers: each query postpones the end of the boot.
    testFleet.hypervisor.onCall = ({ method, vmId }) => {
      const vm = testFleet.hypervisor.state.vms.get(vmId ?? 0);
      if (method === 'guestIsUp' && vm?.startedAt !== undefined) vm.startedAt += 1_000_000;
    };
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine?.phase).toBe('failed');
    expect(machine?.failure).toMatchObject({ code: 'PROVISION_TIMED_OUT', phase: 'booting' });
    expect(existingResources(testFleet.hypervisor)).toEqual({ vms: [], machines: [], isos: [] });
    expect(await addressesInUse(testFleet.store)).toEqual([]);
  });

  it('a creation whose task fails is tried three times, then the pool backs off and names the reason', async () => {
    const testFleet = aTestFleet(
      someSettings([aPool({ limits: { ...aPool().limits, min: 1, max: 5 } })]),
    );
    for (let n = 0; n < 3; n += 1) {
      testFleet.hypervisor.failNextTask('create', new TaskFailed('TASK_FAILED', 'storage is full'));
    }
    await untilAtRest(testFleet.fleet, testFleet);
    const { pools } = await testFleet.fleet.status();
    expect(pools[0]?.backoff).toMatchObject({
      failures: 1,
      code: 'TASK_FAILED',
      message: 'storage is full',
    });
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
    const before = testFleet.hypervisor.calls.filter(({ method }) => method === 'createVm').length;
    expect(before).toBe(3);
    await testFleet.clock.advance(61_000);
    await untilAtRest(testFleet.fleet, testFleet);
    const after = await testFleet.fleet.status();
    expect(after.pools[0]).toMatchObject({ ready: 1, target: 1, backoff: undefined });
  });

  const noSpace = () => new NoCapacity('NO_STORAGE_SPACE', 'No space left on device');

  it('a machine whose storage is full is created on another host', async () => {
    const testFleet = aTestFleet();
    testFleet.hypervisor.failNextTask('create', noSpace());
    testFleet.hypervisor.failNextTask('create', noSpace());
    const { id } = await reachPhase(testFleet, 'ready');
    const hosts = testFleet.hypervisor.calls
      .filter(({ method }) => method === 'createVm')
      .map(({ host }) => host);
    expect(new Set(hosts).size).toBe(3);
    expect(existingResources(testFleet.hypervisor).machines).toEqual([id]);
    expect(await journalReasonsIn(testFleet.store)).toContain('StorageFull');
  });

  it('a machine whose storages are all full fails with that error', async () => {
    const testFleet = aTestFleet();
    for (let host = 0; host < 3; host += 1) testFleet.hypervisor.failNextTask('create', noSpace());
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([
      {
        phase: 'failed',
        failure: { code: 'NO_STORAGE_SPACE', message: 'No space left on device' },
      },
    ]);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
  });

  it('a machine fails without another attempt when the error cannot be retried', async () => {
    const testFleet = aTestFleet();
    testFleet.hypervisor.failNext(
      'createVm',
      new InvalidConfig('PARAMETER_REFUSED', 'no such bridge'),
    );
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine).toMatchObject({ phase: 'failed', failure: { code: 'PARAMETER_REFUSED' } });
  });

  it('credentials that are refused for a moment do not fail a machine', async () => {
    const testFleet = aTestFleet();
    const { id } = await reachPhase(testFleet, 'creating');
    const refusal = new Unauthorized('CREDENTIALS_REFUSED', 'Authentication failed!');
    for (const method of ['task', 'vmConfig', 'growBootDisk', 'uploadIso', 'vmState'] as const) {
      testFleet.hypervisor.failNext(method, refusal);
    }
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await machinesIn(testFleet.store)).toMatchObject([{ id, phase: 'ready' }]);
  });
});

describe('reconcileMachine: tasks that fail', () => {
  /** Runs passes for this long and returns the times at which the method was called. */
  async function callTimes(testFleet: TestFleet, method: HypervisorMethod, seconds: number) {
    const { hypervisor, clock } = testFleet;
    const times: number[] = [];
    const start = clock.monotonic();
    hypervisor.onCall = (call) => {
      if (call.method === method) times.push((clock.monotonic() - start) / 1_000);
    };
    await runPasses(testFleet, seconds);
    hypervisor.onCall = undefined;
    return times;
  }

  it('a destroy task that fails is repeated with a growing back-off and recorded once', async () => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'ready');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    const vm = testFleet.hypervisor.state.vms.get(placement?.vmId ?? 0);
    while ((await machinesIn(testFleet.store))[0]?.task?.kind !== 'destroy') {
      await onePass(testFleet.fleet, testFleet);
    }
    vm?.options.set('lock', 'backup');
    const times = await callTimes(testFleet, 'destroyVm', 1_800);
    const waits = times.map((time, at) => time - (times[at - 1] ?? 0));
    expect(times.length).toBeLessThan(15);
    for (const [at, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(Math.min(2 ** at, 300));
      expect(wait).toBeLessThan(320);
    }
    const recorded = (await testFleet.store.journal.read()).filter(
      ({ reason }) => reason === 'VM_LOCKED',
    );
    expect(recorded.map(({ message }) => message)).toEqual(['VM is locked (backup)']);
    vm?.options.delete('lock');
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
  });

  it('an unreachable host is tried again at least every 30 seconds', async () => {
    const testFleet = aTestFleet();
    const { placement } = await reachPhase(testFleet, 'ready');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    testFleet.hypervisor.setOnline(placement?.host ?? '', false);
    const times = await callTimes(testFleet, 'vmConfig', 600);
    const waits = times.slice(1).map((time, at) => time - (times[at] ?? 0));
    expect(Math.max(...waits)).toBeGreaterThan(25);
    expect(Math.max(...waits)).toBeLessThan(33);
  });

  it('a shutdown task that fails leads to a stop at once, without an error', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'ready');
    await testFleet.fleet.scaleTo('workers', 0, REASON);
    testFleet.hypervisor.failNextTask('shutdown', new TaskFailed('TASK_FAILED', 'got timeout'));
    const stops = await callTimes(testFleet, 'stopVm', 10);
    expect(stops).toHaveLength(1);
    expect(stops[0]).toBeLessThan(5);
    await untilAtRest(testFleet.fleet, testFleet);
    expect(existingResources(testFleet.hypervisor).vms).toEqual([]);
    expect(await journalReasonsIn(testFleet.store)).not.toContain('TASK_FAILED');
  });

  it('progress ends a back-off: the next error waits one second again', async () => {
    const deletion = { mode: 'stop', shutdownTimeoutMs: 0 } as const;
    const testFleet = aTestFleet(someSettings([aPool({ deletion })]));
    const { hypervisor, fleet } = testFleet;
    await reachPhase(testFleet, 'ready');
    await fleet.scaleTo('workers', 0, REASON);
    const failure = new TaskFailed('TASK_FAILED', 'no');
    for (let n = 0; n < 4; n += 1) hypervisor.failNextTask('stop', failure);
    hypervisor.failNextTask('destroy', failure);
    const times = await callTimes(testFleet, 'destroyVm', 60);
    expect(times).toHaveLength(2);
    expect((times[1] ?? 0) - (times[0] ?? 0)).toBeLessThan(5);
  });

  it('a failed start is backed off, and a later timeout names its cause', async () => {
    const pool = aJoiningPool({ provisionTimeoutMs: 700_000, registrationTimeoutMs: 600_000 });
    const testFleet = aJoiningTestFleet(someSettings([pool]));
    const { placement } = await aJoiningMachine(testFleet);
    const vm = testFleet.hypervisor.state.vms.get(placement.vmId);
    vm?.options.set('lock', 'suspended');
    if (vm !== undefined) vm.startedAt = undefined;
    const starts = await callTimes(testFleet, 'startVm', 900);
    expect(starts.length).toBeGreaterThan(3);
    expect(starts.length).toBeLessThan(12);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine?.failure?.code).toMatch(/^(REGISTRATION|PROVISION)_TIMED_OUT$/);
    expect(machine?.failure?.message).toContain('VM is locked (suspended)');
  });

  it('a start that succeeds does not end a back-off: the guest may power itself off again', async () => {
    const pool = aJoiningPool({ provisionTimeoutMs: 700_000, registrationTimeoutMs: 600_000 });
    const testFleet = aJoiningTestFleet(someSettings([pool]));
    const { placement } = await aJoiningMachine(testFleet);
    const { hypervisor } = testFleet;
    const vm = hypervisor.state.vms.get(placement.vmId)!;
    let count = 0;
    const { onCall } = hypervisor;
    hypervisor.onCall = (call) => {
      onCall?.(call);
      if (call.method === 'view') vm.startedAt = undefined;
      if (call.method !== 'startVm') return;
      count += 1;
      if (count % 2 === 1) {
        hypervisor.failNextTask('start', new Conflict('VM_LOCKED', 'VM is locked (backup)'));
      }
    };
    await runPasses(testFleet, 300);
    expect(count).toBeGreaterThan(4);
    expect(count).toBeLessThan(24);
  });

  it('a machine in back-off still fails at its provision timeout', async () => {
    const pool = aPool({ provisionTimeoutMs: 400_000 });
    const testFleet = aTestFleet(someSettings([pool]));
    const { placement } = await reachPhase(testFleet, 'starting');
    testFleet.hypervisor.state.vms.get(placement?.vmId ?? 0)?.options.set('lock', 'backup');
    await runPasses(testFleet, 440);
    const [machine] = await machinesIn(testFleet.store);
    expect(machine?.failure).toMatchObject({ code: 'PROVISION_TIMED_OUT', phase: 'starting' });
  });
});

describe('reconcileMachine: which errors fail a machine', () => {
  /** Each of the calls that create the VM is refused this many times. */
  async function phasesAfter(error: PvescalerError, times: number) {
    const testFleet = aTestFleet();
    for (let time = 0; time < times; time += 1) testFleet.hypervisor.failNext('createVm', error);
    await testFleet.fleet.scaleTo('workers', 1, REASON);
    await untilAtRest(testFleet.fleet, testFleet);
    return phasesIn(testFleet.store);
  }

  it.each([
    ['VM_LOCKED', new Conflict('VM_LOCKED', 'VM is locked')],
    ['VM_CHANGED', new Conflict('VM_CHANGED', 'the VM was changed')],
    ['CREDENTIALS_REFUSED', new Unauthorized('CREDENTIALS_REFUSED', 'no')],
    ['TLS_NOT_TRUSTED', new Unauthorized('TLS_NOT_TRUSTED', 'no')],
    ['PVE_UNREACHABLE', new Unreachable('PVE_UNREACHABLE', 'no')],
    ['PROVISION_TIMED_OUT', new TimedOut('PROVISION_TIMED_OUT', 'no')],
  ])('%s is transient: any number of them does not', async (_code, error) => {
    expect(await phasesAfter(error, 5)).toEqual(['ready']);
  });

  it.each([
    [2, 'ready'],
    [3, 'failed'],
  ])('an error that may be repeated, %i times: the machine is %s', async (times, phase) => {
    expect(await phasesAfter(new TaskFailed('TASK_FAILED', 'no'), times)).toEqual([phase]);
  });

  it('a machine whose region cannot be read is left as it is, and continues afterwards', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'booting');
    const { hypervisor } = testFleet;
    const view = hypervisor.view.bind(hypervisor);
    hypervisor.view = () => Promise.reject(new Unreachable('PVE_UNREACHABLE', 'no route'));
    const calls = hypervisor.calls.length;
    await runPasses(testFleet, 10);
    expect(await phasesIn(testFleet.store)).toEqual(['booting']);
    expect(hypervisor.calls.slice(calls)).toEqual([]);
    hypervisor.view = view;
    await untilAtRest(testFleet.fleet, testFleet);
    expect(await phasesIn(testFleet.store)).toEqual(['ready']);
  });

  it('a machine of a pool without a provision timeout in the config is not ended', async () => {
    const testFleet = aTestFleet();
    await reachPhase(testFleet, 'booting');
    testFleet.hypervisor.guestIsUp = () => Promise.resolve(false);
    const settings = someSettings([aPool({ name: 'another' })]);
    const fleet = aFleet({ ...testFleet, settings, seed: 2 });
    await runPasses({ ...testFleet, fleet }, 2);
    await testFleet.clock.advance(24 * 3_600_000);
    await runPasses({ ...testFleet, fleet }, 3);
    expect(await phasesIn(testFleet.store)).toEqual(['booting']);
  });
});

describe('reconcileMachine: errors while joining', () => {
  it('a missing permission to change Nodes does not fail a machine that has registered', async () => {
    const testFleet = aJoiningTestFleet();
    for (let time = 0; time < 5; time += 1) {
      testFleet.cluster.failNext(
        'changeNode',
        new Unauthorized('PERMISSION_MISSING', 'permission denied'),
      );
    }
    await aReadyMachine(testFleet);
    const recorded = (await testFleet.store.journal.read()).map(({ reason }) => reason);
    expect(recorded).toContain('PERMISSION_MISSING');
    expect(recorded).not.toContain('PoolBackedOff');
  });

  it('an unexpected response of the API server does not fail a machine that has registered', async () => {
    const testFleet = aJoiningTestFleet();
    testFleet.cluster.failNext('changeNode', new Bug('UNEXPECTED_ANSWER', 'not JSON'));
    await aReadyMachine(testFleet);
    expect((await testFleet.store.journal.read()).map(({ reason }) => reason)).toContain(
      'UNEXPECTED_ANSWER',
    );
  });
});
