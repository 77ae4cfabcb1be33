// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Bug, InvalidConfig, TaskFailed, Unauthorized } from '../../ports/errors.ts';
import { aJoiningTestFleet, aReadyMachine } from '../testing/joining-test-fleet.ts';
import { aPool, STATIC_NETWORK, someSettings } from '../testing/settings.ts';
import {
  addressesInUse,
  aTestFleet,
  existingResources,
  machinesIn,
  REASON,
  reachPhase,
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
