// SPDX-License-Identifier: Apache-2.0
// Known mistakes of servers for this protocol, one test each. The client is of the newest generation unless a test is
// about another one.
import { describe, expect, it } from 'vitest';
import { someSettings } from '../../src/fleet/testing/settings.ts';
import { aFleet, onePass } from '../../src/fleet/testing/test-fleet.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import type { RpcResponse } from './client.ts';
import { decodeNode } from './decode-node.ts';
import {
  countVms,
  deleteNodes,
  fakeNode,
  findGroup,
  increaseSize,
  listInstanceIds,
  listInstanceStates,
  listInstances,
  recordJoin,
  simulateOutage,
  targetSize,
} from './expectations.ts';
import { aGroup, aPool, REGION, withServer } from './test-server.ts';

const POOL = aPool();

async function template(client: {
  call(rpc: string, request: object): Promise<RpcResponse>;
}): Promise<RpcResponse> {
  return decodeNode(
    (await client.call('NodeGroupTemplateNodeInfo', { id: 'workers' }))['nodeBytes'],
  );
}

describe('pitfalls', () => {
  it(
    'pitfall-01: serves every read while Proxmox hangs',
    withServer({}, async (fixture) => {
      const { client, hypervisor, clock } = fixture;
      await increaseSize(client, 1);
      const { promise: hanging, resolve: release } = Promise.withResolvers<never>();
      hypervisor.view = () => hanging;
      const lease = await fixture.store.leases.acquire({
        name: 'reconcile',
        holder: 'test',
        durationMs: 60_000,
      });
      const stuck = fixture.fleet.reconcileOnce(lease).catch(() => undefined);
      const before = hypervisor.calls.length;
      for (const [rpc, request] of [
        ['NodeGroups', {}],
        ['Refresh', {}],
        ['NodeGroupForNode', { node: fakeNode('x') }],
        ['NodeGroupTargetSize', { id: 'workers' }],
        ['NodeGroupNodes', { id: 'workers' }],
        ['NodeGroupTemplateNodeInfo', { id: 'workers' }],
        ['NodeGroupGetOptions', { id: 'workers' }],
        ['NodeGroupIncreaseSize', { id: 'workers', delta: 1 }],
      ] as const) {
        await client.call(rpc, request, { deadlineMs: 5_000 });
      }
      expect(hypervisor.calls).toHaveLength(before);
      release(undefined as never);
      await clock.advance(1);
      await stuck;
    }),
  );

  it(
    'pitfall-02: records increases and deletions before responding, and carries them out later',
    withServer({}, async ({ client, store, hypervisor, settle }) => {
      const before = hypervisor.calls.length;
      await increaseSize(client, 2);
      expect((await store.intents.list()).map(({ value }) => value.state)).toEqual(['open']);
      await settle();
      const [first = ''] = await listInstanceIds(client);
      const calls = hypervisor.calls.length;
      expect(calls).toBeGreaterThan(before);
      await deleteNodes(client, [fakeNode(first)]);
      expect(hypervisor.calls).toHaveLength(calls);
      expect(await targetSize(client)).toBe(1);
      expect(await listInstanceStates(client)).toEqual(['Deleting', 'Running']);
    }),
  );

  it(
    'pitfall-03: a call cancelled before its intent is durable changes nothing',
    withServer({}, async ({ client, store, reconcile }) => {
      const late = await client.expectError(
        'NodeGroupIncreaseSize',
        { id: 'workers', delta: 1 },
        { deadlineMs: -1 },
      );
      expect(late.code).toBe(4);
      const abort = new AbortController();
      const create = store.intents.create.bind(store.intents);
      store.intents.create = async (key, value, options) => {
        abort.abort();
        while (options?.signal?.aborted !== true)
          await new Promise((resolve) => setImmediate(resolve));
        return create(key, value, options);
      };
      const cancelled = await client.expectError(
        'NodeGroupIncreaseSize',
        { id: 'workers', delta: 1 },
        { cancel: abort.signal },
      );
      expect(cancelled.code).toBe(1);
      await reconcile();
      expect(await targetSize(client)).toBe(0);
      expect(await store.intents.list()).toEqual([]);
    }),
  );

  it(
    'pitfall-04: derives the target from machines, so it survives a restart and the loss of the database',
    withServer({}, async (fixture) => {
      await increaseSize(fixture.client, 3);
      await fixture.settle();
      const again = aFleet({ ...fixture, settings: someSettings(), seed: 4 });
      await again.view.refresh();
      expect(again.view.index.membersOf('workers')).toHaveLength(3);
      const store = new MemoryStore({ clock: fixture.clock });
      const without = aFleet({ ...fixture, store, settings: someSettings(), seed: 5 });
      await onePass(without, { ...fixture, store });
      expect(without.view.index.membersOf('workers')).toHaveLength(3);
    }),
  );

  it(
    'pitfall-05: lists machines from their request on, also while their host is down',
    withServer({}, async ({ client, reconcile, settle, hypervisor }) => {
      await increaseSize(client, 2);
      expect(await listInstanceStates(client)).toEqual(['Creating', 'Creating']);
      const early = await listInstanceIds(client);
      await reconcile();
      expect(new Set(await listInstanceIds(client))).toEqual(new Set(early));
      await settle();
      expect(await listInstanceStates(client)).toEqual(['Running', 'Running']);
      const known = await listInstanceIds(client);
      for (const host of ['pve1', 'pve2', 'pve3']) hypervisor.setOnline(host, false);
      await reconcile();
      expect(await listInstanceIds(client)).toEqual(known);
    }),
  );

  it(
    'pitfall-06: an outage of Proxmox deletes nothing; growth is refused after a minute',
    withServer({}, async (fixture) => {
      const { client } = fixture;
      await increaseSize(client, 2);
      await fixture.settle();
      const known = await listInstanceIds(client);
      await simulateOutage(fixture, 2);
      await increaseSize(client, 1);
      await simulateOutage(fixture, 5);
      const refused = await client.expectError('NodeGroupIncreaseSize', {
        id: 'workers',
        delta: 1,
      });
      expect(refused).toEqual({
        code: 14,
        details: expect.stringContaining('pve1 does not answer'),
      });
      expect(await listInstanceIds(client)).toEqual(expect.arrayContaining([...known]));
      expect(await targetSize(client)).toBe(3);
      await fixture.settle();
      expect(await targetSize(client)).toBe(3);
      expect(countVms(fixture)).toBe(3);
    }),
  );

  it(
    'pitfall-07: finds placeholder nodes by provider id; deleting a gone machine succeeds, a foreign node is refused',
    withServer({}, async ({ client, settle, reconcile, store }) => {
      await increaseSize(client, 2);
      for (const id of await listInstanceIds(client))
        expect(await findGroup(client, fakeNode(id))).toBe('workers');
      const [early = ''] = await listInstanceIds(client);
      await settle();
      expect(await findGroup(client, fakeNode(early))).toBe('workers');
      // The same machine under its provider id; the order of instances may have changed.
      const machine = await store.machines.get(early.split('/').at(-1) ?? '');
      const first = `proxmox://${REGION}/${machine?.value.placement?.vmId ?? 0}`;
      const [second = ''] = (await listInstanceIds(client)).filter((id) => id !== first);
      expect(await findGroup(client, fakeNode(first))).toBe('workers');
      await deleteNodes(client, [fakeNode(first)]);
      await settle();
      await deleteNodes(client, [fakeNode(first)]);
      await deleteNodes(client, [fakeNode(early)]);
      await deleteNodes(client, [
        fakeNode('pvescaler://machine/00000000-0000-4000-8000-00000000ffff'),
      ]);
      expect(await targetSize(client)).toBe(1);
      const foreign = await client.expectError('NodeGroupDeleteNodes', {
        id: 'workers',
        nodes: [fakeNode(second), { name: 'cp-1', providerID: 'k3s://cp-1' }],
      });
      expect(foreign.code).toBe(9);
      await reconcile();
      expect(await listInstanceStates(client)).toEqual(['Running']);
    }),
  );

  it(
    'pitfall-08: does not touch a VM id that belongs to an unmanaged VM now',
    withServer({}, async (fixture) => {
      const { client, hypervisor } = fixture;
      await increaseSize(client, 1);
      await fixture.settle();
      const [id = ''] = await listInstanceIds(client);
      const vmId = Number(id.split('/').at(-1));
      const vm = hypervisor.state.vms.get(vmId)!;
      hypervisor.state.vms.set(vmId, {
        ...vm,
        options: new Map([
          ['name', 'unmanaged'],
          ['memory', '2048'],
        ]),
        startedAt: undefined,
      });
      await deleteNodes(client, [fakeNode(id)]);
      await fixture.settle();
      expect(hypervisor.state.vms.get(vmId)?.options.get('name')).toBe('unmanaged');
      expect(await listInstances(client)).toEqual([]);
      const unmanaged = { ...vm, vmId: 1_290, options: new Map([['name', 'other']]) };
      hypervisor.state.vms.set(1_290, unmanaged);
      await fixture.reconcile();
      const refused = await client.expectError('NodeGroupDeleteNodes', {
        id: 'workers',
        nodes: [fakeNode(`proxmox://${REGION}/1290`)],
      });
      expect(refused.code).toBe(9);
    }),
  );

  it(
    'pitfall-09: decreasing the target cancels only machines that are not created yet',
    withServer({}, async (fixture) => {
      const { client } = fixture;
      await increaseSize(client, 2);
      await fixture.settle();
      await increaseSize(client, 1);
      await client.call('NodeGroupDecreaseTargetSize', { id: 'workers', delta: -5 });
      expect(await targetSize(client)).toBe(2);
      await client.call('NodeGroupDecreaseTargetSize', { id: 'workers', delta: -1 });
      expect(await targetSize(client)).toBe(2);
      await fixture.settle();
      expect(countVms(fixture)).toBe(2);
      expect(
        (await client.expectError('NodeGroupDecreaseTargetSize', { id: 'workers', delta: 1 })).code,
      ).toBe(3);
    }),
  );

  it(
    'pitfall-11: a template is never empty, and an unknown group is an error',
    withServer({}, async ({ client }) => {
      const answer = await client.call('NodeGroupTemplateNodeInfo', { id: 'workers' });
      expect(answer['nodeBytes'].length).toBeGreaterThan(100);
      expect((await client.expectError('NodeGroupTemplateNodeInfo', { id: 'unknown' })).code).toBe(
        5,
      );
    }),
  );

  it(
    'pitfall-12: the template has the expected allocatable, capacity, labels, taints and conditions',
    withServer(
      {
        group: {
          gpu: { type: 't4', count: 2, resource: 'nvidia.com/gpu' },
          extendedResources: { 'example.com/nic': 3 },
        },
      },
      async (fixture) => {
        const { client } = fixture;
        const { metadata, spec, status } = await template(client);
        const bytes = (text: string) => Number(text.replace('Ki', '')) * 1_024;
        expect(status.capacity.cpu.string).toBe('2000m');
        expect(status.allocatable.cpu.string).toBe('1800m');
        expect(bytes(status.allocatable.memory.string)).toBeLessThan(
          bytes(status.capacity.memory.string),
        );
        expect(bytes(status.capacity.memory.string)).toBeLessThan(2 * 2 ** 30);
        expect(Number(status.allocatable['ephemeral-storage'].string)).toBeLessThan(
          Number(status.capacity['ephemeral-storage'].string),
        );
        expect(status.allocatable.pods.string).toBe('110');
        expect(status.allocatable['nvidia.com/gpu'].string).toBe('2');
        expect(status.capacity['example.com/nic'].string).toBe('3');
        expect(status.conditions).toContainEqual(
          expect.objectContaining({ type: 'Ready', status: 'True' }),
        );
        expect(metadata.labels).toMatchObject({
          tier: 'test',
          'kubernetes.io/os': 'linux',
          'kubernetes.io/arch': 'amd64',
          'node.kubernetes.io/instance-type': 'medium',
          'topology.kubernetes.io/region': REGION,
          'autoscaler.proxmox/group': 'workers',
          'autoscaler.proxmox/gpu': 't4',
        });
        expect(spec.taints).toEqual([{ key: 'dedicated', value: 'test', effect: 'NoSchedule' }]);
        const { cpu, memoryBytes, diskBytes } = POOL.size;
        const learned = {
          cpuMilli: 1_500,
          memoryBytes: 2 ** 30,
          ephemeralStorageBytes: 10 ** 9,
          pods: 50,
          learnedAt: 1,
        };
        await fixture.store.pools.create('workers', {
          pool: 'workers',
          allocatable: { [`${cpu}x${memoryBytes}x${diskBytes}`]: learned },
        });
        await fixture.clock.advance(1_000);
        await fixture.fleet.view.refresh();
        await fixture.clock.advance(1_000);
        expect((await template(client))['status'].allocatable.cpu.string).toBe('1500m');
        expect(
          fixture.warnings.some((text) => text.includes('cpuMilli 1500 instead of 1800')),
        ).toBe(true);
      },
    ),
  );

  it.each([
    ['k3s://node-1'],
    ['rke2://node-1'],
    [`proxmox://${REGION}/1250`],
    ['proxmox://72f0fd39-6070-40a9-bf80-ed531e5ee7fc'],
  ])('pitfall-13: lists the provider id of the Node unchanged: %s', (providerId) =>
    withServer({}, async (fixture) => {
      const { client } = fixture;
      await increaseSize(client, 1);
      await fixture.settle();
      await recordJoin(fixture, 0, { nodeName: 'node-1', providerId });
      expect(await listInstanceIds(client)).toEqual([providerId]);
      expect(await findGroup(client, { name: 'node-1', providerID: providerId })).toBe('workers');
      await deleteNodes(client, [{ name: 'node-1', providerID: providerId }]);
      expect(await targetSize(client)).toBe(0);
    })(),
  );

  it(
    'pitfall-14: a node being deleted belongs to its group until the machine is gone',
    withServer({}, async (fixture) => {
      const { client } = fixture;
      await increaseSize(client, 1);
      await fixture.settle();
      await recordJoin(fixture, 0, { nodeName: 'node-1', providerId: 'k3s://node-1' });
      const node = { name: 'node-1', providerID: 'k3s://node-1' };
      await deleteNodes(client, [node]);
      expect(await findGroup(client, node)).toBe('workers');
      await fixture.reconcile();
      expect(await findGroup(client, node)).toBe('workers');
      expect(await listInstanceStates(client)).toEqual(['Deleting']);
      await fixture.settle();
      expect(await findGroup(client, node)).toBe('');
    }),
  );

  it(
    'pitfall-15: keeps the minimum after deletions',
    withServer({ pools: [aPool({ limits: { ...aPool().limits, min: 2 } })] }, async (fixture) => {
      const { client } = fixture;
      await fixture.settle();
      expect(await targetSize(client)).toBe(2);
      await deleteNodes(
        client,
        (await listInstanceIds(client)).map((id) => fakeNode(id)),
      );
      await fixture.settle();
      expect(await targetSize(client)).toBe(2);
      expect(countVms(fixture)).toBe(2);
    }),
  );

  it(
    'pitfall-16: an increase beyond the maximum is refused and changes nothing',
    withServer({}, async ({ client }) => {
      await increaseSize(client, 9);
      const refused = await client.expectError('NodeGroupIncreaseSize', {
        id: 'workers',
        delta: 2,
      });
      expect(refused).toEqual({
        code: 8,
        details: 'pool workers is limited to 10 machines, not 11',
      });
      expect(await targetSize(client)).toBe(9);
    }),
  );

  it(
    'pitfall-17: two processes on one store share their state, and only one is the driver',
    withServer({}, async (fixture) => {
      const other = aFleet({ ...fixture, settings: someSettings(), seed: 7 });
      await other.request('workers', 6, { by: 'cli', reason: 'test' });
      const refused = await fixture.client.expectError('NodeGroupIncreaseSize', {
        id: 'workers',
        delta: 5,
      });
      expect(refused.code).toBe(8);
      expect(await targetSize(fixture.client)).toBe(6);
      await expect(
        fixture.store.leases.acquire({ name: 'reconcile', holder: 'second', durationMs: 60_000 }),
      ).rejects.toMatchObject({ code: 'LEASE_HELD' });
    }),
  );

  it(
    'pitfall-18: warns when serving without TLS, and refuses to start without insecure: true',
    withServer({}, async ({ warnings }) => {
      expect(warnings).toContainEqual(
        expect.stringContaining('any client that can reach it can create and delete VMs'),
      );
      await expect(
        withServer({ serve: { insecure: false } }, async () => undefined)(),
      ).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
    }),
  );

  it(
    'pitfall-19: the id of a group is the name of its pool and never changes',
    withServer({}, async ({ client, settle }) => {
      const before = await client.call('NodeGroups');
      await increaseSize(client, 2);
      await settle();
      const after = await client.call('NodeGroups');
      expect(after['nodeGroups'].map(({ id }: RpcResponse) => id)).toEqual(
        before['nodeGroups'].map(({ id }: RpcResponse) => id),
      );
      expect(after['nodeGroups'][0].id).toBe('workers');
    }),
  );

  it(
    'pitfall-20: nodes of removed pools belong to no group',
    withServer(
      { pools: [aPool(), aPool({ name: 'old' })], settings: { pools: [aGroup(POOL)] } },
      async ({ client, fleet, settle, store }) => {
        await fleet.request('old', 1, { by: 'cli', reason: 'before it was removed' });
        await settle();
        const [machine] = (await store.machines.list()).map(({ value }) => value);
        expect(
          await findGroup(client, fakeNode(`proxmox://${REGION}/${machine?.placement?.vmId}`)),
        ).toBe('');
        expect(await findGroup(client, { name: machine?.placement?.name })).toBe('');
        expect(
          await findGroup(client, {
            name: 'cp-1',
            providerID: 'aws:///eu/i-1',
            labels: { 'autoscaler.proxmox/group': 'workers' },
          }),
        ).toBe('');
        const { nodeGroups } = await client.call('NodeGroups');
        expect(nodeGroups.map(({ id }: RpcResponse) => id)).toEqual(['workers']);
      },
    ),
  );

  it(
    'pitfall-21: Cleanup deletes nothing',
    withServer({}, async (fixture) => {
      await increaseSize(fixture.client, 2);
      await fixture.settle();
      await fixture.client.call('Cleanup');
      await fixture.settle();
      expect(await targetSize(fixture.client)).toBe(2);
      expect(countVms(fixture)).toBe(2);
    }),
  );

  it(
    'pitfall-22: refuses calls before the first reading of Proxmox',
    withServer({ isReady: false }, async (fixture) => {
      expect((await fixture.client.expectError('NodeGroups')).code).toBe(14);
      expect((await fixture.client.expectError('Refresh')).details).toContain('first read');
      expect(fixture.server.waitingFor()).not.toEqual([]);
      await fixture.reconcile();
      expect(fixture.server.waitingFor()).toEqual([]);
      await fixture.client.call('NodeGroups');
    }),
  );

  it(
    'pitfall-24: a machine whose VM disappeared leaves the group',
    withServer({}, async (fixture) => {
      const { client, hypervisor, clock } = fixture;
      await increaseSize(client, 2);
      await fixture.settle();
      const [id = ''] = await listInstanceIds(client);
      hypervisor.state.vms.delete(Number(id.split('/').at(-1)));
      await fixture.reconcile();
      expect(await targetSize(client)).toBe(2);
      await clock.advance(6 * 60_000);
      await fixture.reconcile();
      await fixture.settle();
      expect(await targetSize(client)).toBe(1);
      expect(await listInstanceIds(client)).not.toContain(id);
    }),
  );
});
