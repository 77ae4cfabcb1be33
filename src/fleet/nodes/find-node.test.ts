// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { aClusterNode } from '../../ports/fakes/sample-cluster.ts';
import { aMachine, aMachineId } from '../../ports/fakes/sample-records.ts';
import { aJoiningTestFleet } from '../testing/joining-test-fleet.ts';
import { REGION } from '../testing/settings.ts';
import {
  existingResources,
  machinesIn,
  phasesIn,
  REASON,
  runPasses,
  untilAtRest,
} from '../testing/test-fleet.ts';
import { findNode } from './find-node.ts';

describe('findNode', () => {
  it.each([
    ['has another SMBIOS UUID', { systemUuid: '99999999-0000-4000-8000-000000000000' }],
    ['is older than the machine', { createdAt: Date.UTC(2020, 0, 1) }],
  ])(
    'does not match a Node with the name and provider id of a machine if the Node %s',
    async (_what, overrides: Partial<ClusterNode>) => {
      const testFleet = aJoiningTestFleet();
      testFleet.guests.behaviour = { neverRegisters: true };
      await testFleet.fleet.scaleTo('workers', 1, REASON);
      await runPasses(testFleet, 2);
      const [machine] = await machinesIn(testFleet.store);
      const { name = '', vmId = 0 } = machine?.placement ?? {};
      testFleet.cluster.state.putNode(
        aClusterNode({
          name,
          providerId: vmProviderId(REGION, vmId),
          createdAt: testFleet.clock.now(),
          ...overrides,
        }),
      );
      await runPasses(testFleet, 30);
      expect(await phasesIn(testFleet.store)).toEqual(['joining']);
      await testFleet.clock.advance(5 * 60_000);
      await untilAtRest(testFleet.fleet, testFleet);
      const [failed] = await machinesIn(testFleet.store);
      expect(failed).toMatchObject({
        phase: 'failed',
        failure: { code: 'REGISTRATION_TIMED_OUT' },
      });
      expect(existingResources(testFleet.hypervisor)).toMatchObject({ vms: [], isos: [] });
      expect(testFleet.cluster.state.nodes.has(name)).toBe(true);
    },
  );

  it.each([
    ['provider id', { providerId: vmProviderId(REGION, 1_250), name: 'other' }],
    ['name', { providerId: '', name: 'worker-1' }],
  ])(
    'does not match a Node by its %s if the record of another machine names it',
    (_what, overrides) => {
      const node = aClusterNode({ systemUuid: '', createdAt: 1_000, ...overrides });
      const placement = {
        region: REGION,
        host: 'pve1',
        vmId: 1_250,
        name: 'worker-1',
        diskStorage: 'local-lvm',
        addresses: [],
      };
      const machine = aMachine({ requestedAt: 0, placement });
      const other = aMachine({ id: aMachineId(2) });
      expect(findNode(machine, [node], { byNodeUid: () => [machine] })).toBe(node);
      expect(findNode(machine, [node], { byNodeUid: () => [other] })).toBeUndefined();
    },
  );
});
