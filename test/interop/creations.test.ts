// SPDX-License-Identifier: Apache-2.0
// What becomes of creations that fail, and of groups that have no room.
import { describe, expect, it } from 'vitest';
import { NoCapacity } from '../../src/ports/errors.ts';
import {
  fakeNode,
  groupOf,
  grow,
  ids,
  instances,
  outage,
  remove,
  states,
  target,
  vmCount,
} from './expectations.ts';
import { aGroup, aPool, onStage } from './stage.ts';

/** Six of them fill the hosts. */
const LARGE = { cpu: 16, memoryBytes: 30 * 2 ** 30, diskBytes: 20 * 2 ** 30 };

describe('failed creations', () => {
  it(
    'stay with their reason and in the target until the autoscaler takes note, and lower it once',
    onStage({}, async (stage) => {
      const { client, hypervisor } = stage;
      await grow(client, 2);
      hypervisor.failNextTask('create', new NoCapacity('NO_STORAGE_SPACE', 'local-lvm is full'));
      await stage.rest();
      const failed = (await instances(client)).filter((one) => one['status'].errorInfo !== null);
      expect(failed.map((one) => one['status'])).toEqual([
        {
          instanceState: 'instanceCreating',
          errorInfo: {
            errorCode: 'NO_STORAGE_SPACE',
            errorMessage: 'local-lvm is full',
            instanceErrorClass: 1,
          },
        },
      ]);
      // A target that is reached would be a scale-up that succeeded: no back-off.
      expect(await target(client)).toBe(2);
      await client.call('NodeGroupDecreaseTargetSize', { id: 'workers', delta: -1 });
      expect(await target(client)).toBe(2);
      const id: string = failed[0]?.['id'];
      expect(await groupOf(client, fakeNode(id, 'create-error'))).toBe('workers');
      await remove(client, [fakeNode(id, 'create-error')]);
      expect(await ids(client)).not.toContain(id);
      expect(await target(client)).toBe(1);
      await stage.rest();
      expect(await target(client)).toBe(1);
      expect(await ids(client)).not.toContain(id);
      expect(vmCount(stage)).toBe(1);
    }),
  );

  it(
    'do not stand in the way of a minimum, nor of as many as the pool may have',
    onStage(
      { pools: [aPool({ limits: { ...aPool().limits, min: 1, max: 1 } })] },
      async (stage) => {
        const { client, hypervisor } = stage;
        hypervisor.failNextTask('create', new NoCapacity('NO_STORAGE_SPACE', 'full'));
        await stage.rest();
        await stage.clock.advance(2 * 60_000);
        await stage.rest();
        const { nodeGroups } = await client.call('NodeGroups');
        expect(await target(client)).toBe(2);
        expect(nodeGroups[0].maxSize).toBe(2);
        expect(vmCount(stage)).toBe(1);
      },
    ),
  );

  it(
    'offer no room of their own while they are shown',
    onStage({ pools: [aPool({ size: LARGE })] }, async (stage) => {
      const { client, hypervisor } = stage;
      const max = async () => (await client.call('NodeGroups'))['nodeGroups'][0].maxSize;
      await grow(client, 2);
      for (let count = 0; count < 2; count += 1)
        hypervisor.failNextTask('create', new NoCapacity('NO_STORAGE_SPACE', 'full'));
      await stage.rest();
      await stage.clock.advance(5 * 60_000);
      await stage.round();
      expect(await target(client)).toBe(2);
      expect(await max()).toBe(6);
    }),
  );

  it(
    'count until they are taken note of also where a VM was made, and are shown as being deleted then',
    onStage({ pools: [aPool({ provisionTimeoutMs: 2_000 })] }, async (stage) => {
      const { client } = stage;
      await grow(client, 1);
      while ((await instances(client))[0]?.['status'].errorInfo === null) await stage.round();
      // Its VM is still there, and is not what the autoscaler deletes: that id may be another's soon.
      expect(vmCount(stage)).toBe(1);
      const [failed] = await instances(client);
      expect(failed).toMatchObject({
        id: expect.stringContaining('pvescaler://machine/'),
        status: {
          instanceState: 'instanceCreating',
          errorInfo: { errorCode: 'PROVISION_TIMED_OUT', instanceErrorClass: 99 },
        },
      });
      expect(await target(client)).toBe(1);
      await remove(client, [fakeNode(failed?.['id'], 'create-error')]);
      expect(await target(client)).toBe(0);
      await stage.round();
      expect(await states(client)).toEqual(['Deleting']);
      expect(await target(client)).toBe(0);
      await stage.rest();
      expect(await ids(client)).toEqual([]);
      expect(vmCount(stage)).toBe(0);
    }),
  );

  it(
    'are forgotten after an hour when nobody takes note',
    onStage({}, async (stage) => {
      const { client, hypervisor } = stage;
      await grow(client, 1);
      hypervisor.failNextTask('create', new NoCapacity('NO_STORAGE_SPACE', 'full'));
      await stage.rest();
      await stage.clock.advance(59 * 60_000);
      await stage.round();
      expect(await instances(client)).toHaveLength(1);
      expect(await target(client)).toBe(1);
      await stage.clock.advance(2 * 60_000);
      await stage.round();
      expect(await instances(client)).toEqual([]);
      expect(await target(client)).toBe(0);
    }),
  );
});

describe('room', () => {
  const large = aPool({ size: LARGE });

  it(
    'limits the maximum to what fits, never below the target',
    onStage({ pools: [large] }, async (stage) => {
      const { client } = stage;
      const max = async () => (await client.call('NodeGroups'))['nodeGroups'][0].maxSize;
      expect(await max()).toBe(6);
      await grow(client, 2);
      expect(await max()).toBe(6);
      await stage.rest();
      await stage.clock.advance(5_000);
      await stage.round();
      expect(await max()).toBe(6);
      for (const host of ['pve1', 'pve2', 'pve3']) stage.hypervisor.setOnline(host, false);
      await stage.clock.advance(5_000);
      await stage.round();
      expect(await max()).toBe(2);
    }),
  );

  it(
    'is not offered again when those who were accepted get their places, before it is counted anew',
    onStage({ pools: [large] }, async (stage) => {
      const { client } = stage;
      const max = async () => (await client.call('NodeGroups'))['nodeGroups'][0].maxSize;
      await stage.clock.advance(5_000);
      await stage.round();
      await grow(client, 3);
      for (let round = 0; round < 4; round += 1) {
        expect(await max()).toBe(6);
        await stage.round();
      }
      expect(await states(client)).toContain('Creating');
      expect(await max()).toBe(6);
    }),
  );

  it(
    'is all or none for a group that grows only from none to all: less would be taken for all',
    onStage(
      {
        pools: [large],
        group: { options: { ...aGroup(large).options, zeroOrMaxNodeScaling: true }, max: 6 },
      },
      async (stage) => {
        const { client, hypervisor } = stage;
        const max = async () => (await client.call('NodeGroups'))['nodeGroups'][0].maxSize;
        expect(await max()).toBe(6);
        hypervisor.setOnline('pve3', false);
        await stage.clock.advance(5_000);
        await stage.round();
        expect(await max()).toBe(0);
        hypervisor.setOnline('pve3', true);
        await stage.clock.advance(5_000);
        await stage.round();
        await grow(client, 6);
        await stage.rest();
        expect(await max()).toBe(6);
      },
    ),
  );

  it(
    'is what it was while Proxmox has been silent for a moment',
    onStage({ pools: [large] }, async (stage) => {
      const { client } = stage;
      const group = async () => (await client.call('NodeGroups'))['nodeGroups'][0];
      await grow(client, 1);
      await outage(stage, 2);
      expect((await group()).maxSize).toBe(6);
      await grow(client, 1);
      expect((await group()).maxSize).toBe(6);
      await outage(stage, 3);
      expect(await group()).toMatchObject({
        maxSize: 2,
        debug: expect.stringContaining('its hosts cannot be read'),
      });
    }),
  );

  it(
    'ends before growing is refused, after a minute: whoever was offered room in his loop gets it',
    onStage({ pools: [large] }, async (stage) => {
      const { client, clock } = stage;
      const max = async () => (await client.call('NodeGroups'))['nodeGroups'][0].maxSize;
      // No round ends meanwhile, as when every connection hangs.
      await clock.advance(43_000);
      expect(await max()).toBe(6);
      await clock.advance(2_000);
      expect(await max()).toBe(0);
      await clock.advance(12_000);
      await grow(client, 1);
      expect(await max()).toBe(1);
      await clock.advance(3_000);
      expect(
        (await client.failure('NodeGroupIncreaseSize', { id: 'workers', delta: 1 })).code,
      ).toBe(14);
    }),
  );

  it(
    'that vanishes after the call was accepted becomes a failed creation within a minute',
    onStage({ pools: [large] }, async (stage) => {
      const { client, hypervisor, clock } = stage;
      await grow(client, 1);
      for (const host of ['pve1', 'pve2', 'pve3']) hypervisor.setOnline(host, false);
      for (let round = 0; round < 4; round += 1) {
        await stage.round();
        await clock.advance(15_000);
      }
      const [only] = await instances(client);
      expect(only?.['status']).toMatchObject({
        instanceState: 'instanceCreating',
        errorInfo: { errorCode: 'NO_HOST_FITS', instanceErrorClass: 1 },
      });
      expect(await target(client)).toBe(1);
      await remove(client, [fakeNode(only?.['id'], 'create-error')]);
      expect(await target(client)).toBe(0);
    }),
  );
});
