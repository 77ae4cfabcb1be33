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
import { findNode, swapUuidBytes } from './find-node.ts';

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

describe('findNode: which of several Nodes', () => {
  const placement = {
    region: REGION,
    host: 'pve1',
    vmId: 1_250,
    name: 'worker-1',
    diskStorage: 'local-lvm',
    addresses: [],
  };
  const machine = aMachine({ requestedAt: 100_000, placement });
  const providerId = vmProviderId(REGION, 1_250);
  const records = { byNodeUid: () => [] };
  const find = (...nodes: readonly ClusterNode[]) => findNode(machine, nodes, records);
  const unproven = (overrides: Partial<ClusterNode>) =>
    aClusterNode({ systemUuid: '', createdAt: 100_000, providerId: '', name: 'x', ...overrides });

  it.each([
    ['in lower case', machine.id as string],
    ['in upper case', machine.id.toUpperCase()],
    ['with swapped bytes', swapUuidBytes(machine.id)],
  ])('matches the SMBIOS UUID %s, however old the Node is', (_what, systemUuid) => {
    const node = aClusterNode({ systemUuid, createdAt: 0, name: 'any' });
    expect(find(node)).toBe(node);
  });

  it('prefers, of two Nodes with its SMBIOS UUID, the one whose provider id names its VM', () => {
    const first = aClusterNode({ systemUuid: machine.id, providerId: '', name: 'a' });
    const second = aClusterNode({ systemUuid: machine.id, providerId, name: 'b' });
    expect(find(first, second)).toBe(second);
    expect(find(first)).toBe(first);
    expect(findNode(aMachine({ id: machine.id }), [first, second], records)).toBe(first);
  });

  it('prefers the provider id of its VM to a SMBIOS UUID alone, and both to a name', () => {
    const byUuid = aClusterNode({ systemUuid: machine.id, providerId: '', name: 'a' });
    const byProvider = unproven({ providerId });
    const byName = unproven({ name: 'worker-1' });
    expect(find(byName, byUuid, byProvider)).toBe(byProvider);
    expect(find(byName, byUuid)).toBe(byUuid);
    expect(find(byName)).toBe(byName);
  });

  it('matches a provider id that has its SMBIOS UUID', () => {
    const node = unproven({ providerId: `proxmox://${machine.id}` });
    expect(find(node)).toBe(node);
    const proven = { systemUuid: machine.id, providerId: `proxmox://${machine.id}` };
    const other = aClusterNode({ systemUuid: machine.id, providerId: '', name: 'first' });
    const named = aClusterNode({ ...proven, name: 'second' });
    expect(find(other, named)).toBe(named);
  });

  it.each([
    [40_000, true],
    [39_999, false],
  ])('matches a Node without a SMBIOS UUID that was created at %d: %s', (createdAt, isFound) => {
    expect(find(unproven({ providerId, createdAt }))).toEqual(
      isFound ? expect.anything() : undefined,
    );
    const named = unproven({ name: 'worker-1', createdAt });
    expect(find(named)).toEqual(isFound ? named : undefined);
  });

  it('does not match the provider id of the same VM id in another region', () => {
    expect(find(unproven({ providerId: vmProviderId('other', 1_250) }))).toBeUndefined();
  });

  it('a machine without a placement is found by its SMBIOS UUID only', () => {
    const bare = aMachine({ id: machine.id });
    expect(findNode(bare, [unproven({ providerId })], records)).toBeUndefined();
  });

  it('swapUuidBytes swaps the bytes of the first three fields', () => {
    const swapped = '33221100-5544-7766-8899-aabbccddeeff';
    expect(swapUuidBytes('00112233-4455-6677-8899-aabbccddeeff')).toBe(swapped);
  });
});
