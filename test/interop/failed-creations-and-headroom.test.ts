// SPDX-License-Identifier: Apache-2.0
// How failed creations are listed, and how headroom limits the maximum size.
import { describe, expect, it } from 'vitest';
import { NoCapacity } from '../../src/ports/errors.ts';
import {
  countVms,
  deleteNodes,
  fakeNode,
  findGroup,
  increaseSize,
  listInstanceIds,
  listInstanceStates,
  listInstances,
  simulateOutage,
  targetSize,
} from './expectations.ts';
import { aGroup, aPool, withServer } from './test-server.ts';

/** Six of these fill the hosts. */
const LARGE = { cpu: 16, memoryBytes: 30 * 2 ** 30, diskBytes: 20 * 2 ** 30 };

describe('failed creations', () => {
  it(
    'are listed with their error and count towards the target until the autoscaler deletes them',
    withServer({}, async (fixture) => {
      const { client, hypervisor } = fixture;
      await increaseSize(client, 2);
      hypervisor.failNextTask('create', new NoCapacity('NO_HOST_FITS', 'the host is full'));
      await fixture.settle();
      const failed = (await listInstances(client)).filter(
        (one) => one['status'].errorInfo !== null,
      );
      expect(failed.map((one) => one['status'])).toEqual([
        {
          instanceState: 'instanceCreating',
          errorInfo: {
            errorCode: 'NO_HOST_FITS',
            errorMessage: 'the host is full',
            instanceErrorClass: 1,
          },
        },
      ]);
      // A target that is reached would count as a successful scale-up: no back-off.
      expect(await targetSize(client)).toBe(2);
      await client.call('NodeGroupDecreaseTargetSize', { id: 'workers', delta: -1 });
      expect(await targetSize(client)).toBe(2);
      const id: string = failed[0]?.['id'];
      expect(await findGroup(client, fakeNode(id, 'create-error'))).toBe('workers');
      await deleteNodes(client, [fakeNode(id, 'create-error')]);
      expect(await listInstanceIds(client)).not.toContain(id);
      expect(await targetSize(client)).toBe(1);
      await fixture.settle();
      expect(await targetSize(client)).toBe(1);
      expect(await listInstanceIds(client)).not.toContain(id);
      expect(countVms(fixture)).toBe(1);
    }),
  );

  it(
    'do not count against the minimum or the maximum of the pool',
    withServer(
      { pools: [aPool({ limits: { ...aPool().limits, min: 1, max: 1 } })] },
      async (fixture) => {
        const { client, hypervisor } = fixture;
        hypervisor.failNextTask('create', new NoCapacity('NO_HOST_FITS', 'full'));
        await fixture.settle();
        await fixture.clock.advance(2 * 60_000);
        await fixture.settle();
        const { nodeGroups } = await client.call('NodeGroups');
        expect(await targetSize(client)).toBe(2);
        expect(nodeGroups[0].maxSize).toBe(2);
        expect(countVms(fixture)).toBe(1);
      },
    ),
  );

  it(
    'do not add headroom while they are listed',
    withServer({ pools: [aPool({ size: LARGE })] }, async (fixture) => {
      const { client, hypervisor } = fixture;
      const max = async () => (await client.call('NodeGroups'))['nodeGroups'][0].maxSize;
      await increaseSize(client, 2);
      for (let count = 0; count < 2; count += 1)
        hypervisor.failNextTask('create', new NoCapacity('NO_HOST_FITS', 'full'));
      await fixture.settle();
      await fixture.clock.advance(5 * 60_000);
      await fixture.reconcile();
      expect(await targetSize(client)).toBe(2);
      expect(await max()).toBe(6);
    }),
  );

  it(
    'count towards the target while their VM still exists, and are listed as deleting after acknowledgement',
    withServer({ pools: [aPool({ provisionTimeoutMs: 2_000 })] }, async (fixture) => {
      const { client } = fixture;
      await increaseSize(client, 1);
      while ((await listInstances(client))[0]?.['status'].errorInfo === null)
        await fixture.reconcile();
      // The VM still exists. The listed id is not the VM's: another machine may get that VM id soon.
      expect(countVms(fixture)).toBe(1);
      const [failed] = await listInstances(client);
      expect(failed).toMatchObject({
        id: expect.stringContaining('pvescaler://machine/'),
        status: {
          instanceState: 'instanceCreating',
          errorInfo: { errorCode: 'PROVISION_TIMED_OUT', instanceErrorClass: 99 },
        },
      });
      expect(await targetSize(client)).toBe(1);
      await deleteNodes(client, [fakeNode(failed?.['id'], 'create-error')]);
      expect(await targetSize(client)).toBe(0);
      await fixture.reconcile();
      expect(await listInstanceStates(client)).toEqual(['Deleting']);
      expect(await targetSize(client)).toBe(0);
      await fixture.settle();
      expect(await listInstanceIds(client)).toEqual([]);
      expect(countVms(fixture)).toBe(0);
    }),
  );

  it(
    'are dropped after an hour without acknowledgement',
    withServer({}, async (fixture) => {
      const { client, hypervisor } = fixture;
      await increaseSize(client, 1);
      hypervisor.failNextTask('create', new NoCapacity('NO_HOST_FITS', 'full'));
      await fixture.settle();
      await fixture.clock.advance(59 * 60_000);
      await fixture.reconcile();
      expect(await listInstances(client)).toHaveLength(1);
      expect(await targetSize(client)).toBe(1);
      await fixture.clock.advance(2 * 60_000);
      await fixture.reconcile();
      expect(await listInstances(client)).toEqual([]);
      expect(await targetSize(client)).toBe(0);
    }),
  );
});

describe('headroom', () => {
  const large = aPool({ size: LARGE });

  it(
    'limits the maximum to what fits, never below the target',
    withServer({ pools: [large] }, async (fixture) => {
      const { client } = fixture;
      const max = async () => (await client.call('NodeGroups'))['nodeGroups'][0].maxSize;
      expect(await max()).toBe(6);
      await increaseSize(client, 2);
      expect(await max()).toBe(6);
      await fixture.settle();
      await fixture.clock.advance(5_000);
      await fixture.reconcile();
      expect(await max()).toBe(6);
      for (const host of ['pve1', 'pve2', 'pve3']) fixture.hypervisor.setOnline(host, false);
      await fixture.clock.advance(5_000);
      await fixture.reconcile();
      expect(await max()).toBe(2);
    }),
  );

  it(
    'is not offered twice when accepted machines are placed before the next count',
    withServer({ pools: [large] }, async (fixture) => {
      const { client } = fixture;
      const max = async () => (await client.call('NodeGroups'))['nodeGroups'][0].maxSize;
      await fixture.clock.advance(5_000);
      await fixture.reconcile();
      await increaseSize(client, 3);
      for (let pass = 0; pass < 4; pass += 1) {
        expect(await max()).toBe(6);
        await fixture.reconcile();
      }
      expect(await listInstanceStates(client)).toContain('Creating');
      expect(await max()).toBe(6);
    }),
  );

  it(
    'is all or nothing for a group with zeroOrMaxNodeScaling',
    withServer(
      {
        pools: [large],
        group: {
          clusterAutoscaler: { ...aGroup(large).clusterAutoscaler, zeroOrMaxNodeScaling: true },
          limits: { ...large.limits, max: 6 },
        },
      },
      async (fixture) => {
        const { client, hypervisor } = fixture;
        const max = async () => (await client.call('NodeGroups'))['nodeGroups'][0].maxSize;
        expect(await max()).toBe(6);
        hypervisor.setOnline('pve3', false);
        await fixture.clock.advance(5_000);
        await fixture.reconcile();
        expect(await max()).toBe(0);
        hypervisor.setOnline('pve3', true);
        await fixture.clock.advance(5_000);
        await fixture.reconcile();
        await increaseSize(client, 6);
        await fixture.settle();
        expect(await max()).toBe(6);
      },
    ),
  );

  it(
    'stays unchanged during a short outage of Proxmox',
    withServer({ pools: [large] }, async (fixture) => {
      const { client } = fixture;
      const group = async () => (await client.call('NodeGroups'))['nodeGroups'][0];
      await increaseSize(client, 1);
      await simulateOutage(fixture, 2);
      expect((await group()).maxSize).toBe(6);
      await increaseSize(client, 1);
      expect((await group()).maxSize).toBe(6);
      await simulateOutage(fixture, 3);
      expect(await group()).toMatchObject({
        maxSize: 2,
        debug: expect.stringContaining('its hosts cannot be read'),
      });
    }),
  );

  it(
    'drops to zero after 45 s without a reading, before growth is refused after a minute',
    withServer({ pools: [large] }, async (fixture) => {
      const { client, clock } = fixture;
      const max = async () => (await client.call('NodeGroups'))['nodeGroups'][0].maxSize;
      // No reconcile pass ends meanwhile, as when every connection hangs.
      await clock.advance(43_000);
      expect(await max()).toBe(6);
      await clock.advance(2_000);
      expect(await max()).toBe(0);
      await clock.advance(12_000);
      await increaseSize(client, 1);
      expect(await max()).toBe(1);
      await clock.advance(3_000);
      expect(
        (await client.expectError('NodeGroupIncreaseSize', { id: 'workers', delta: 1 })).code,
      ).toBe(14);
    }),
  );

  it(
    'that disappears after an accepted call becomes a failed creation within a minute',
    withServer({ pools: [large] }, async (fixture) => {
      const { client, hypervisor, clock } = fixture;
      await increaseSize(client, 1);
      for (const host of ['pve1', 'pve2', 'pve3']) hypervisor.setOnline(host, false);
      for (let pass = 0; pass < 4; pass += 1) {
        await fixture.reconcile();
        await clock.advance(15_000);
      }
      const [only] = await listInstances(client);
      expect(only?.['status']).toMatchObject({
        instanceState: 'instanceCreating',
        errorInfo: { errorCode: 'NO_HOST_FITS', instanceErrorClass: 1 },
      });
      expect(await targetSize(client)).toBe(1);
      await deleteNodes(client, [fakeNode(only?.['id'], 'create-error')]);
      expect(await targetSize(client)).toBe(0);
    }),
  );
});
