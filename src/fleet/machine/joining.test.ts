// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { STARTUP_TAINT, VMID_LABEL } from '../../bootstrap/index.ts';
import { vmProviderId } from '../../model/provider-id.ts';
import { Unreachable } from '../../ports/errors.ts';
import {
  aJoiningMachine,
  aJoiningTestFleet,
  aReadyMachine,
  type JoiningTestFleet,
  joiningSettings,
  onlyMachine,
} from '../testing/joining-test-fleet.ts';
import { REGION } from '../testing/settings.ts';
import {
  aFleet,
  existingResources,
  journalReasonsIn,
  machinesIn,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';

const MINUTE_MS = 60_000;

function anotherProcess(testFleet: JoiningTestFleet): JoiningTestFleet {
  return { ...testFleet, fleet: aFleet({ ...testFleet, settings: joiningSettings(), seed: 2 }) };
}

/** Advances the clock and the guests while no driver runs. */
async function withoutDriver(testFleet: JoiningTestFleet, minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    await testFleet.clock.advance(MINUTE_MS);
    testFleet.guests.settle();
  }
}

describe('joining: a machine whose Node registers', () => {
  it('becomes ready when its Node is Ready; labels are set while the startup taint is present', async () => {
    const testFleet = aJoiningTestFleet();
    const changes: string[] = [];
    testFleet.cluster.onCall = ({ method }) => {
      const [node] = testFleet.cluster.state.nodes.values();
      const isTainted = node?.taints.some(({ key }) => key === STARTUP_TAINT.key);
      if (['declareNode', 'changeNode'].includes(method)) {
        changes.push(`${method} ${isTainted === true ? 'tainted' : 'open'}`);
      }
    };
    const machine = await aReadyMachine(testFleet);
    const node = testFleet.cluster.state.nodes.get(machine.placement.name);
    expect(machine).toMatchObject({
      phase: 'ready',
      nodeName: machine.placement.name,
      nodeUid: node?.uid,
      providerId: vmProviderId(REGION, machine.placement.vmId),
    });
    expect(node?.labels).toMatchObject({
      tier: 'small',
      'node-role.kubernetes.io/worker': '',
      'autoscaler.proxmox/group': 'workers',
      [VMID_LABEL]: String(machine.placement.vmId),
    });
    expect(node?.taints).toEqual([]);
    expect(changes).toEqual(['declareNode tainted', 'changeNode tainted']);
    expect(existingResources(testFleet.hypervisor).isos).toEqual([]);
  });

  it('becomes ready after the provision timeout if its Node became Ready while Proxmox could not be read', async () => {
    const testFleet = aJoiningTestFleet();
    const { id } = await aJoiningMachine(testFleet);
    testFleet.guests.behaviour = {};
    for (let minute = 0; minute < 40; minute += 1) {
      testFleet.hypervisor.failNext(
        'view',
        new Unreachable('PVE_UNREACHABLE', 'connection refused'),
      );
      await testFleet.clock.advance(MINUTE_MS);
      await runPasses(testFleet, 1);
    }
    await untilAtRest(testFleet.fleet, testFleet);
    expect((await onlyMachine(testFleet, 'ready')).id).toBe(id);
  });
});

describe('joining: registration timeout', () => {
  it('a machine whose Node registered while no driver ran becomes ready, however long that was', async () => {
    const testFleet = aJoiningTestFleet();
    const { id } = await aJoiningMachine(testFleet);
    testFleet.guests.behaviour = {};
    await withoutDriver(testFleet, 40);
    const next = anotherProcess(testFleet);
    await untilAtRest(next.fleet, next);
    expect((await onlyMachine(next, 'ready')).id).toBe(id);
  });

  it('a machine without a Node gets its full registration timeout after a new driver starts', async () => {
    const testFleet = aJoiningTestFleet();
    const { id } = await aJoiningMachine(testFleet);
    await withoutDriver(testFleet, 25);
    const next = anotherProcess(testFleet);
    await runPasses(next, 5);
    next.guests.behaviour = {};
    await untilAtRest(next.fleet, next);
    expect((await onlyMachine(next, 'ready')).id).toBe(id);
  });

  it('a machine whose VM is marked as ready is kept, and its pool does not back off', async () => {
    const testFleet = aJoiningTestFleet();
    const { placement } = await aJoiningMachine(testFleet);
    const { options } = testFleet.hypervisor.state.vms.get(placement.vmId)!;
    options.set('description', `${options.get('description')} ready=1`);
    await testFleet.clock.advance(6 * MINUTE_MS);
    await runPasses(testFleet, 5);
    await onlyMachine(testFleet, 'ready');
    const reasons = await journalReasonsIn(testFleet.store);
    expect(reasons).toContain('RecordCorrected');
    expect(reasons).not.toContain('REGISTRATION_TIMED_OUT');
    expect(reasons).not.toContain('PoolBackedOff');
  });

  it('a machine whose Node does not appear in time fails with REGISTRATION_TIMED_OUT', async () => {
    const testFleet = aJoiningTestFleet();
    await aJoiningMachine(testFleet);
    const next = anotherProcess(testFleet);
    await runPasses(next, 5);
    await testFleet.clock.advance(6 * MINUTE_MS);
    await untilAtRest(next.fleet, next);
    expect((await machinesIn(testFleet.store))[0]?.failure?.code).toBe('REGISTRATION_TIMED_OUT');
  });
});
