// SPDX-License-Identifier: Apache-2.0
// Which machine a node belongs to when VM ids are reused or change while a machine starts.
import { describe, expect, it } from 'vitest';
import type { Machine, MachineId, Phase } from '../../src/model/machine.ts';

import { placeholderProviderId, vmProviderId } from '../../src/model/provider-id.ts';
import {
  deleteNodes,
  fakeNode,
  findGroup,
  increaseSize,
  listInstanceIds,
  listInstanceStates,
  recordJoin,
  targetSize,
} from './expectations.ts';
import { REGION, type ServerFixture, withServer } from './test-server.ts';

const VM_ID = 1_250;
const VM = vmProviderId(REGION, VM_ID);

interface RecordFields extends Partial<Machine> {
  readonly phase: Phase;
}

function machineId(index: number): MachineId {
  return `00000000-0000-4000-8000-00000000000${index}` as MachineId;
}

/** Writes a machine record; all of them have the same VM id. */
async function write(
  { store, fleet }: ServerFixture,
  index: number,
  fields: RecordFields,
): Promise<Machine> {
  const machine: Machine = {
    id: machineId(index),
    pool: 'workers',
    phaseSince: 0,
    requestedAt: index,
    size: { cpu: 2, memoryBytes: 2 ** 31, diskBytes: 2 ** 34 },
    attempts: 0,
    placement: {
      region: REGION,
      host: 'pve1',
      vmId: VM_ID,
      name: `worker-${index}`,
      diskStorage: 'local-lvm',
      addresses: [],
    },
    ...fields,
  };
  await store.machines.create(machine.id, machine);
  await fleet.view.refresh();
  return machine;
}

const FAILURE = {
  code: 'PROVISION_TIMED_OUT',
  message: 'too slow',
  at: 0,
  phase: 'joining',
} as const;

describe('a reused VM id', () => {
  it.each([
    ['gone', {}],
    ['failed', { failure: FAILURE }],
  ] as const)('belongs to the new machine when the old one is %s and had a Node', (phase, more) =>
    withServer({}, async (fixture) => {
      const { client } = fixture;
      await write(fixture, 1, { phase, ...more, nodeName: 'worker-1', providerId: VM });
      const now = await write(fixture, 2, { phase: 'booting' });
      expect(await findGroup(client, fakeNode(VM))).toBe('workers');
      const before = await targetSize(client);
      await deleteNodes(client, [fakeNode(VM)]);
      expect(await targetSize(client)).toBe(before - 1);
      expect(fixture.fleet.view.index.isDeletionRequested(now.id)).toBe(true);
    })(),
  );

  it.each([
    ['failed', { failure: FAILURE }],
    ['requested', {}],
  ] as const)('belongs to no machine when the only record with it is %s', (phase, more) =>
    withServer({}, async (fixture) => {
      const { client, hypervisor } = fixture;
      const old = await write(fixture, 1, { phase, ...more });
      expect(await findGroup(client, { name: 'unmanaged', providerID: VM })).toBe('');
      expect(await findGroup(client, fakeNode(placeholderProviderId(old.id)))).toBe('workers');
      hypervisor.state.vms.set(VM_ID, {
        vmId: VM_ID,
        host: 'pve1',
        options: new Map([['name', 'unmanaged']]),
        revision: 1,
        startedAt: undefined,
      });
      // Deleting the unmanaged VM is refused, and our machine is not cancelled.
      await fixture.clock.advance(20_000);
      await fixture.reconcile();
      const before = await targetSize(client);
      const nodes = [{ name: 'unmanaged', providerID: VM }];
      const refused = await client.expectError('NodeGroupDeleteNodes', { id: 'workers', nodes });
      expect(refused.code).toBe(9);
      expect(await targetSize(client)).toBe(before);
    })(),
  );
});

describe('an instance id from before the Node joined', () => {
  it(
    'does not delete a machine whose Node has joined since',
    withServer({}, async (fixture) => {
      const { client } = fixture;
      await increaseSize(client, 1);
      const [early = ''] = await listInstanceIds(client);
      await fixture.settle();
      const [vm = ''] = await listInstanceIds(client);
      const { id } = await recordJoin(fixture, 0, {
        nodeName: 'node-1',
        providerId: 'k3s://node-1',
      });
      for (const old of [early, vm]) {
        const nodes = [fakeNode(old)];
        const refused = await client.expectError('NodeGroupDeleteNodes', { id: 'workers', nodes });
        expect(refused).toEqual({ code: 10, details: expect.stringContaining('node-1') });
      }
      expect(await targetSize(client)).toBe(1);
      expect(await listInstanceStates(client)).toEqual(['Running']);
      expect(fixture.fleet.view.index.isDeletionRequested(id)).toBe(false);
      // Its current provider id deletes it.
      await deleteNodes(client, [fakeNode('k3s://node-1')]);
      expect(await targetSize(client)).toBe(0);
    }),
  );

  it(
    'deletes a machine that has not joined',
    withServer({}, async (fixture) => {
      const { client } = fixture;
      await increaseSize(client, 1);
      const [early = ''] = await listInstanceIds(client);
      await fixture.settle();
      await deleteNodes(client, [fakeNode(early)]);
      expect(await targetSize(client)).toBe(0);
    }),
  );

  it(
    'acknowledges a failure of a machine that had a Node',
    withServer({}, async (fixture) => {
      const { client } = fixture;
      const failed = await write(fixture, 1, {
        phase: 'failed',
        failure: FAILURE,
        nodeName: 'worker-1',
        providerId: VM,
      });
      await deleteNodes(client, [fakeNode(placeholderProviderId(failed.id), 'create-error')]);
      expect(await listInstanceIds(client)).toEqual([]);
    }),
  );
});
