// SPDX-License-Identifier: Apache-2.0
// Whose node is meant, in the states between: ids that come round again, ids that change while a machine comes up,
// machines that lost theirs.
import { describe, expect, it } from 'vitest';
import type { Machine, Phase } from '../../src/model/machine.ts';
import type { MachineId } from '../../src/model/machine-id.ts';
import { placeholderProviderId, vmProviderId } from '../../src/model/provider-id.ts';
import { fakeNode, groupOf, grow, ids, joined, remove, states, target } from './expectations.ts';
import { onStage, REGION, type Stage } from './stage.ts';

const VM_ID = 1_250;
const VM = vmProviderId(REGION, VM_ID);

interface Written extends Partial<Machine> {
  readonly phase: Phase;
}

function machineId(index: number): MachineId {
  return `00000000-0000-4000-8000-00000000000${index}` as MachineId;
}

/** A record as the engine would have left it, at the same VM id as the others. */
async function write({ store, fleet }: Stage, index: number, written: Written): Promise<Machine> {
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
    ...written,
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

describe('a VM id that comes round again', () => {
  it.each([
    ['gone', {}],
    ['failed', { failure: FAILURE }],
  ] as const)('is the new machine’s, not that of one that is %s and had a Node', (phase, more) =>
    onStage({}, async (stage) => {
      const { client } = stage;
      await write(stage, 1, { phase, ...more, nodeName: 'worker-1', providerId: VM });
      const now = await write(stage, 2, { phase: 'booting' });
      expect(await groupOf(client, fakeNode(VM))).toBe('workers');
      const before = await target(client);
      await remove(client, [fakeNode(VM)]);
      expect(await target(client)).toBe(before - 1);
      expect(stage.fleet.view.index.isDeletionRequested(now.id)).toBe(true);
    })(),
  );

  it.each([
    ['failed', { failure: FAILURE }],
    ['requested', {}],
  ] as const)('is nobody’s of ours when the only one that had it is %s', (phase, more) =>
    onStage({}, async (stage) => {
      const { client, hypervisor } = stage;
      const old = await write(stage, 1, { phase, ...more });
      expect(await groupOf(client, { name: 'somebody', providerID: VM })).toBe('');
      expect(await groupOf(client, fakeNode(placeholderProviderId(old.id)))).toBe('workers');
      hypervisor.state.vms.set(VM_ID, {
        vmId: VM_ID,
        host: 'pve1',
        options: new Map([['name', 'somebody']]),
        revision: 1,
        startedAt: undefined,
      });
      // A deletion of the stranger is refused, and ours is not called off by it.
      await stage.clock.advance(20_000);
      await stage.round();
      const before = await target(client);
      const nodes = [{ name: 'somebody', providerID: VM }];
      const refused = await client.failure('NodeGroupDeleteNodes', { id: 'workers', nodes });
      expect(refused.code).toBe(9);
      expect(await target(client)).toBe(before);
    })(),
  );
});

describe('an id that a machine had before its Node came', () => {
  it(
    'deletes no machine that has joined since: the autoscaler’s list of instances is up to two minutes old',
    onStage({}, async (stage) => {
      const { client } = stage;
      await grow(client, 1);
      const [early = ''] = await ids(client);
      await stage.rest();
      const [vm = ''] = await ids(client);
      const { id } = await joined(stage, 0, { nodeName: 'node-1', providerId: 'k3s://node-1' });
      for (const old of [early, vm]) {
        const nodes = [fakeNode(old)];
        const refused = await client.failure('NodeGroupDeleteNodes', { id: 'workers', nodes });
        expect(refused).toEqual({ code: 10, details: expect.stringContaining('node-1') });
      }
      expect(await target(client)).toBe(1);
      expect(await states(client)).toEqual(['Running']);
      expect(stage.fleet.view.index.isDeletionRequested(id)).toBe(false);
      // By its own id it goes, with a Node or after that one was lost.
      await remove(client, [fakeNode('k3s://node-1')]);
      expect(await target(client)).toBe(0);
    }),
  );

  it(
    'still deletes one that has not joined',
    onStage({}, async (stage) => {
      const { client } = stage;
      await grow(client, 1);
      const [early = ''] = await ids(client);
      await stage.rest();
      await remove(client, [fakeNode(early)]);
      expect(await target(client)).toBe(0);
    }),
  );

  it(
    'still takes note of a failure after a Node had come',
    onStage({}, async (stage) => {
      const { client } = stage;
      const failed = await write(stage, 1, {
        phase: 'failed',
        failure: FAILURE,
        nodeName: 'worker-1',
        providerId: VM,
      });
      await remove(client, [fakeNode(placeholderProviderId(failed.id), 'create-error')]);
      expect(await ids(client)).toEqual([]);
    }),
  );
});
