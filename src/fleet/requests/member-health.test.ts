// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Machine, Placement } from '../../model/machine.ts';
import { Cancelled, Unreachable } from '../../ports/errors.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import { aMachine } from '../../ports/fakes/sample-records.ts';
import { aJoiningTestFleet, type JoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { REGION } from '../testing/settings.ts';
import { replaceVm } from '../testing/test-fleet.ts';
import { readMemberHealth } from './member-health.ts';

const PLACEMENT: Placement = {
  region: REGION,
  host: 'pve1',
  vmId: 1_250,
  name: 'worker-1',
  diskStorage: 'local-lvm',
  addresses: [],
  hasRegionInMarker: true,
};

async function healthOf(testFleet: JoiningTestFleet, machine: Machine | undefined) {
  const { hypervisor, clock, cluster } = testFleet;
  const options = { hypervisors: new Map([[REGION, hypervisor]]), clock, cluster };
  return (await readMemberHealth(options, undefined))(machine);
}

function aReadyRecord(overrides: Partial<Machine> = {}): Machine {
  return aMachine({ phase: 'ready', placement: PLACEMENT, nodeName: 'worker-1', ...overrides });
}

describe('readMemberHealth', () => {
  it('knows nothing of a machine without a record or without a place', async () => {
    const unknown = { isVmMissing: undefined, isHostDown: undefined, isNodeReady: undefined };
    expect(await healthOf(aJoiningTestFleet(), undefined)).toEqual(unknown);
    expect(await healthOf(aJoiningTestFleet(), aMachine())).toEqual(unknown);
  });

  it('a machine works whose VM and host are there and whose Node is Ready', async () => {
    const testFleet = aJoiningTestFleet();
    replaceVm(testFleet, PLACEMENT);
    testFleet.cluster.state.putNode(aClusterNode({ name: 'worker-1' }));
    expect(await healthOf(testFleet, aReadyRecord())).toEqual({
      isVmMissing: false,
      isHostDown: false,
      isNodeReady: true,
    });
  });

  it('a VM that the view does not show is missing only if its machine is ready', async () => {
    const testFleet = aJoiningTestFleet();
    expect(await healthOf(testFleet, aReadyRecord())).toMatchObject({ isVmMissing: true });
    const booting = await healthOf(testFleet, aReadyRecord({ phase: 'booting' }));
    expect(booting.isVmMissing).toBeUndefined();
  });

  it.each([
    ['is offline', 'pve1', true],
    ['was removed from the cluster', 'pve9', true],
    ['is another one than in the record, because the VM was moved', 'pve2', false],
  ])('the host of a VM that %s is down: its state is that of the present host', async (...args) => {
    const [, host, isHostDown] = args;
    const testFleet = aJoiningTestFleet();
    replaceVm(testFleet, { ...PLACEMENT, host });
    testFleet.hypervisor.setOnline('pve1', false);
    expect(await healthOf(testFleet, aReadyRecord())).toMatchObject({ isHostDown });
  });

  it('a Node that is missing or NotReady is not Ready', async () => {
    const testFleet = aJoiningTestFleet();
    expect(await healthOf(testFleet, aReadyRecord())).toMatchObject({ isNodeReady: false });
    testFleet.cluster.state.putNode(aClusterNode({ name: 'worker-1', ready: false }));
    expect(await healthOf(testFleet, aReadyRecord())).toMatchObject({ isNodeReady: false });
    const withoutNode = await healthOf(testFleet, aMachine({ placement: PLACEMENT }));
    expect(withoutNode.isNodeReady).toBeUndefined();
  });

  it('what cannot be read is unknown', async () => {
    const testFleet = aJoiningTestFleet();
    const refusal = new Unreachable('PVE_UNREACHABLE', 'connection refused');
    testFleet.hypervisor.view = () => Promise.reject(refusal);
    testFleet.cluster.refresh = () => Promise.reject(refusal);
    expect(await healthOf(testFleet, aReadyRecord())).toEqual({
      isVmMissing: undefined,
      isHostDown: undefined,
      isNodeReady: undefined,
    });
  });

  it.each([new Cancelled('CANCELLED', 'stopped'), new TypeError('a bug')])(
    'does not take %s for a cluster that cannot be read',
    async (error) => {
      const testFleet = aJoiningTestFleet();
      testFleet.cluster.refresh = () => {
        throw error;
      };
      await expect(healthOf(testFleet, aReadyRecord())).rejects.toBe(error);
    },
  );
});
