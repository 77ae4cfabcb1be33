// SPDX-License-Identifier: Apache-2.0
// Where servers of this protocol have gone wrong before, one test each. The client is of the newest generation
// unless a test is about another one.
import { describe, expect, it } from 'vitest';
import { someSettings } from '../../src/fleet/testing/settings.ts';
import { aFleet, onePass } from '../../src/fleet/testing/test-fleet.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import type { Answer } from './client.ts';
import {
  fakeNode,
  groupOf,
  grow,
  ids,
  instances,
  joined,
  outage,
  remove,
  states,
  target,
  vmCount,
} from './expectations.ts';
import { nodeOf } from './node-of.ts';
import { aGroup, aPool, onStage, REGION } from './stage.ts';

const POOL = aPool();

async function template(client: {
  call(rpc: string, request: object): Promise<Answer>;
}): Promise<Answer> {
  return nodeOf((await client.call('NodeGroupTemplateNodeInfo', { id: 'workers' }))['nodeBytes']);
}

describe('pitfalls', () => {
  it(
    'pitfall-01: every read is answered while Proxmox hangs',
    onStage({}, async (stage) => {
      const { client, hypervisor, clock } = stage;
      await grow(client, 1);
      const { promise: never, resolve: end } = Promise.withResolvers<never>();
      hypervisor.view = () => never;
      const lease = await stage.store.leases.acquire({
        name: 'reconcile',
        holder: 'test',
        durationMs: 60_000,
      });
      const stuck = stage.fleet.reconcileOnce(lease).catch(() => undefined);
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
      end(undefined as never);
      await clock.advance(1);
      await stuck;
    }),
  );

  it(
    'pitfall-02: growing and deleting are written down before they are answered, and done later',
    onStage({}, async ({ client, store, hypervisor, rest }) => {
      const before = hypervisor.calls.length;
      await grow(client, 2);
      expect((await store.intents.list()).map(({ value }) => value.state)).toEqual(['open']);
      await rest();
      const [first = ''] = await ids(client);
      const calls = hypervisor.calls.length;
      expect(calls).toBeGreaterThan(before);
      await remove(client, [fakeNode(first)]);
      expect(hypervisor.calls).toHaveLength(calls);
      expect(await target(client)).toBe(1);
      expect(await states(client)).toEqual(['Deleting', 'Running']);
    }),
  );

  it(
    'pitfall-03: a call given up before it was written down changes nothing, then or later',
    onStage({}, async ({ client, store, round }) => {
      const late = await client.failure(
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
      const cancelled = await client.failure(
        'NodeGroupIncreaseSize',
        { id: 'workers', delta: 1 },
        { cancel: abort.signal },
      );
      expect(cancelled.code).toBe(1);
      await round();
      expect(await target(client)).toBe(0);
      expect(await store.intents.list()).toEqual([]);
    }),
  );

  it(
    'pitfall-04: the target comes from facts, and survives the loss of the process and of the database',
    onStage({}, async (stage) => {
      await grow(stage.client, 3);
      await stage.rest();
      const again = aFleet({ ...stage, settings: someSettings(), seed: 4 });
      await again.view.refresh();
      expect(again.view.index.membersOf('workers')).toHaveLength(3);
      const store = new MemoryStore({ clock: stage.clock });
      const without = aFleet({ ...stage, store, settings: someSettings(), seed: 5 });
      await onePass(without, { ...stage, store });
      expect(without.view.index.membersOf('workers')).toHaveLength(3);
    }),
  );

  it(
    'pitfall-05: machines are listed from the first moment, also while their host is down',
    onStage({}, async ({ client, round, rest, hypervisor }) => {
      await grow(client, 2);
      expect(await states(client)).toEqual(['Creating', 'Creating']);
      const early = await ids(client);
      await round();
      expect(new Set(await ids(client))).toEqual(new Set(early));
      await rest();
      expect(await states(client)).toEqual(['Running', 'Running']);
      const known = await ids(client);
      for (const host of ['pve1', 'pve2', 'pve3']) hypervisor.setOnline(host, false);
      await round();
      expect(await ids(client)).toEqual(known);
    }),
  );

  it(
    'pitfall-06: an outage of Proxmox deletes nothing; growing is refused after a minute of it',
    onStage({}, async (stage) => {
      const { client } = stage;
      await grow(client, 2);
      await stage.rest();
      const known = await ids(client);
      await outage(stage, 2);
      await grow(client, 1);
      await outage(stage, 5);
      const refused = await client.failure('NodeGroupIncreaseSize', { id: 'workers', delta: 1 });
      expect(refused).toEqual({
        code: 14,
        details: expect.stringContaining('pve1 does not answer'),
      });
      expect(await ids(client)).toEqual(expect.arrayContaining([...known]));
      expect(await target(client)).toBe(3);
      await stage.rest();
      expect(await target(client)).toBe(3);
      expect(vmCount(stage)).toBe(3);
    }),
  );

  it(
    'pitfall-07: invented nodes are known by their provider id alone; what is gone is deleted, what is not ours is not',
    onStage({}, async ({ client, rest, round }) => {
      await grow(client, 2);
      for (const id of await ids(client))
        expect(await groupOf(client, fakeNode(id))).toBe('workers');
      const [early = ''] = await ids(client);
      await rest();
      expect(await groupOf(client, fakeNode(early))).toBe('workers');
      const [first = '', second = ''] = await ids(client);
      expect(await groupOf(client, fakeNode(first))).toBe('workers');
      await remove(client, [fakeNode(first)]);
      await rest();
      await remove(client, [fakeNode(first)]);
      await remove(client, [fakeNode(early)]);
      await remove(client, [fakeNode('pvescaler://machine/00000000-0000-4000-8000-00000000ffff')]);
      expect(await target(client)).toBe(1);
      const foreign = await client.failure('NodeGroupDeleteNodes', {
        id: 'workers',
        nodes: [fakeNode(second), { name: 'cp-1', providerID: 'k3s://cp-1' }],
      });
      expect(foreign.code).toBe(9);
      await round();
      expect(await states(client)).toEqual(['Running']);
    }),
  );

  it(
    'pitfall-08: a VM id that is somebody else’s now is left alone',
    onStage({}, async (stage) => {
      const { client, hypervisor } = stage;
      await grow(client, 1);
      await stage.rest();
      const [id = ''] = await ids(client);
      const vmId = Number(id.split('/').at(-1));
      const vm = hypervisor.state.vms.get(vmId)!;
      hypervisor.state.vms.set(vmId, {
        ...vm,
        options: new Map([
          ['name', 'somebody-elses'],
          ['memory', '2048'],
        ]),
        startedAt: undefined,
      });
      await remove(client, [fakeNode(id)]);
      await stage.rest();
      expect(hypervisor.state.vms.get(vmId)?.options.get('name')).toBe('somebody-elses');
      expect(await instances(client)).toEqual([]);
      const stranger = { ...vm, vmId: 1_290, options: new Map([['name', 'other']]) };
      hypervisor.state.vms.set(1_290, stranger);
      await stage.round();
      const refused = await client.failure('NodeGroupDeleteNodes', {
        id: 'workers',
        nodes: [fakeNode(`proxmox://${REGION}/1290`)],
      });
      expect(refused.code).toBe(9);
    }),
  );

  it(
    'pitfall-09: decreasing the target calls off what is not made, never more, and destroys nothing',
    onStage({}, async (stage) => {
      const { client } = stage;
      await grow(client, 2);
      await stage.rest();
      await grow(client, 1);
      await client.call('NodeGroupDecreaseTargetSize', { id: 'workers', delta: -5 });
      expect(await target(client)).toBe(2);
      await client.call('NodeGroupDecreaseTargetSize', { id: 'workers', delta: -1 });
      expect(await target(client)).toBe(2);
      await stage.rest();
      expect(vmCount(stage)).toBe(2);
      expect(
        (await client.failure('NodeGroupDecreaseTargetSize', { id: 'workers', delta: 1 })).code,
      ).toBe(3);
    }),
  );

  it(
    'pitfall-10: templates and durations are there for every generation; without options there is no message',
    onStage({}, async ({ client, clientOf }) => {
      const bytes: Buffer = (await client.call('NodeGroupTemplateNodeInfo', { id: 'workers' }))[
        'nodeBytes'
      ];
      const old = (await clientOf('a').call('NodeGroupTemplateNodeInfo', { id: 'workers' }))[
        'nodeInfo'
      ];
      expect(old.metadata.name).toBe(nodeOf(bytes)['metadata'].name);
      for (const generation of ['a0', 'a', 'b', 'c'] as const) {
        const answer = await clientOf(generation).call('NodeGroupGetOptions', {
          id: 'workers',
          defaults: {},
        });
        expect(answer['nodeGroupAutoscalingOptions']).toBeNull();
      }
    }),
  );

  it(
    'pitfall-10: options that are set are complete in both encodings',
    onStage(
      { group: { options: { ...aGroup(POOL).options, scaleDownUnneededTimeMs: 60_000 } } },
      async ({ clientOf }) => {
        const legacy = {
          scaleDownUnneededTime: { duration: '600000000000' },
          scaleDownUnreadyTime: { duration: '1200000000000' },
        };
        const a0 = await clientOf('a0').call('NodeGroupGetOptions', {
          id: 'workers',
          defaults: legacy,
        });
        expect(a0['nodeGroupAutoscalingOptions']).toBeNull();
        const aDefaults = {
          ...legacy,
          MaxNodeProvisionTime: { duration: '420000000000' },
          scaleDownUtilizationThreshold: 0.7,
        };
        const a = (
          await clientOf('a').call('NodeGroupGetOptions', { id: 'workers', defaults: aDefaults })
        )['nodeGroupAutoscalingOptions'];
        expect(a).toMatchObject({
          scaleDownUtilizationThreshold: 0.7,
          scaleDownUnneededTime: { duration: '60000000000' },
          scaleDownUnreadyTime: { duration: '1200000000000' },
          MaxNodeProvisionTime: { duration: '420000000000' },
        });
        const cDefaults = {
          scaleDownUnneededDuration: { seconds: 600 },
          scaleDownUnreadyDuration: { seconds: 1200 },
          MaxNodeProvisionDuration: { seconds: 420 },
        };
        const b = (
          await clientOf('b').call('NodeGroupGetOptions', {
            id: 'workers',
            defaults: { ...aDefaults, ...cDefaults },
          })
        )['nodeGroupAutoscalingOptions'];
        expect(b).toMatchObject({
          scaleDownUnneededTime: { duration: '60000000000' },
          scaleDownUnneededDuration: { seconds: '60' },
        });
        const c = (
          await clientOf('c').call('NodeGroupGetOptions', { id: 'workers', defaults: cDefaults })
        )['nodeGroupAutoscalingOptions'];
        expect(c).toMatchObject({
          scaleDownUnneededDuration: { seconds: '60', nanos: 0 },
          scaleDownUnreadyDuration: { seconds: '1200' },
          MaxNodeProvisionDuration: { seconds: '420' },
        });
      },
    ),
  );

  it(
    'pitfall-11: a template is never empty; where there is no group there is an error',
    onStage({}, async ({ client }) => {
      const answer = await client.call('NodeGroupTemplateNodeInfo', { id: 'workers' });
      expect(answer['nodeBytes'].length).toBeGreaterThan(100);
      expect((await client.failure('NodeGroupTemplateNodeInfo', { id: 'nobody' })).code).toBe(5);
    }),
  );

  it(
    'pitfall-12: allocatable is less than capacity, with disk, pods, labels, taints and readiness as they will be',
    onStage(
      {
        group: {
          gpu: { type: 't4', count: 2, resource: 'nvidia.com/gpu' },
          extendedResources: { 'example.com/nic': 3 },
        },
      },
      async (stage) => {
        const { client } = stage;
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
        await stage.store.pools.create('workers', {
          pool: 'workers',
          allocatable: { [`${cpu}x${memoryBytes}x${diskBytes}`]: learned },
        });
        await stage.clock.advance(1_000);
        await stage.fleet.view.refresh();
        await stage.clock.advance(1_000);
        expect((await template(client))['status'].allocatable.cpu.string).toBe('1500m');
        expect(
          stage.warnings.some((words) => words.includes('cpuMilli 1500 instead of 1800')),
        ).toBe(true);
      },
    ),
  );

  it.each([
    ['k3s://node-1'],
    ['rke2://node-1'],
    [`proxmox://${REGION}/1250`],
    ['proxmox://72f0fd39-6070-40a9-bf80-ed531e5ee7fc'],
  ])(
    'pitfall-13: once there is a Node, its own provider id is told, letter by letter: %s',
    (providerId) =>
      onStage({}, async (stage) => {
        const { client } = stage;
        await grow(client, 1);
        await stage.rest();
        await joined(stage, 0, { nodeName: 'node-1', providerId });
        expect(await ids(client)).toEqual([providerId]);
        expect(await groupOf(client, { name: 'node-1', providerID: providerId })).toBe('workers');
        await remove(client, [{ name: 'node-1', providerID: providerId }]);
        expect(await target(client)).toBe(0);
      })(),
  );

  it(
    'pitfall-14: a node being deleted is its group’s until nothing of the machine is left',
    onStage({}, async (stage) => {
      const { client } = stage;
      await grow(client, 1);
      await stage.rest();
      await joined(stage, 0, { nodeName: 'node-1', providerId: 'k3s://node-1' });
      const node = { name: 'node-1', providerID: 'k3s://node-1' };
      await remove(client, [node]);
      expect(await groupOf(client, node)).toBe('workers');
      await stage.round();
      expect(await groupOf(client, node)).toBe('workers');
      expect(await states(client)).toEqual(['Deleting']);
      await stage.rest();
      expect(await groupOf(client, node)).toBe('');
    }),
  );

  it(
    'pitfall-15: the minimum is kept by the server, whoever deletes',
    onStage({ pools: [aPool({ limits: { ...aPool().limits, min: 2 } })] }, async (stage) => {
      const { client } = stage;
      await stage.rest();
      expect(await target(client)).toBe(2);
      await remove(
        client,
        (await ids(client)).map((id) => fakeNode(id)),
      );
      await stage.rest();
      expect(await target(client)).toBe(2);
      expect(vmCount(stage)).toBe(2);
    }),
  );

  it(
    'pitfall-16: growing beyond the maximum is an error that changes nothing',
    onStage({}, async ({ client }) => {
      await grow(client, 9);
      const refused = await client.failure('NodeGroupIncreaseSize', { id: 'workers', delta: 2 });
      expect(refused).toEqual({ code: 8, details: 'pool workers may have 10 machines, not 11' });
      expect(await target(client)).toBe(9);
    }),
  );

  it(
    'pitfall-17: two processes on one store share one state, and one of them drives',
    onStage({}, async (stage) => {
      const other = aFleet({ ...stage, settings: someSettings(), seed: 7 });
      await other.request('workers', 6, { by: 'cli', reason: 'somebody else' });
      const refused = await stage.client.failure('NodeGroupIncreaseSize', {
        id: 'workers',
        delta: 5,
      });
      expect(refused.code).toBe(8);
      expect(await target(stage.client)).toBe(6);
      await expect(
        stage.store.leases.acquire({ name: 'reconcile', holder: 'second', durationMs: 60_000 }),
      ).rejects.toMatchObject({ code: 'LEASE_HELD' });
    }),
  );

  it(
    'pitfall-18: without TLS there is a warning, and without a word for it no server',
    onStage({}, async ({ warnings }) => {
      expect(warnings).toContainEqual(
        expect.stringContaining('whoever reaches it can make and delete VMs'),
      );
      await expect(
        onStage({ serve: { insecure: false } }, async () => undefined)(),
      ).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
    }),
  );

  it(
    'pitfall-19: a group’s id is the pool’s name and never changes',
    onStage({}, async ({ client, rest }) => {
      const before = await client.call('NodeGroups');
      await grow(client, 2);
      await rest();
      const after = await client.call('NodeGroups');
      expect(after['nodeGroups'].map(({ id }: Answer) => id)).toEqual(
        before['nodeGroups'].map(({ id }: Answer) => id),
      );
      expect(after['nodeGroups'][0].id).toBe('workers');
    }),
  );

  it(
    'pitfall-20: nodes of pools that are no longer there belong to no group',
    onStage(
      { pools: [aPool(), aPool({ name: 'old' })], face: { groups: [aGroup(POOL)] } },
      async ({ client, fleet, rest, store }) => {
        await fleet.request('old', 1, { by: 'cli', reason: 'before it was removed' });
        await rest();
        const [machine] = (await store.machines.list()).map(({ value }) => value);
        expect(
          await groupOf(client, fakeNode(`proxmox://${REGION}/${machine?.placement?.vmId}`)),
        ).toBe('');
        expect(await groupOf(client, { name: machine?.placement?.name })).toBe('');
        expect(
          await groupOf(client, {
            name: 'cp-1',
            providerID: 'aws:///eu/i-1',
            labels: { 'autoscaler.proxmox/group': 'workers' },
          }),
        ).toBe('');
        const { nodeGroups } = await client.call('NodeGroups');
        expect(nodeGroups.map(({ id }: Answer) => id)).toEqual(['workers']);
      },
    ),
  );

  it(
    'pitfall-21: the end of the autoscaler deletes nothing',
    onStage({}, async (stage) => {
      await grow(stage.client, 2);
      await stage.rest();
      await stage.client.call('Cleanup');
      await stage.rest();
      expect(await target(stage.client)).toBe(2);
      expect(vmCount(stage)).toBe(2);
    }),
  );

  it(
    'pitfall-22: before the first look at Proxmox nobody is shown an empty world',
    onStage({ isReady: false }, async (stage) => {
      expect((await stage.client.failure('NodeGroups')).code).toBe(14);
      expect((await stage.client.failure('Refresh')).details).toContain('first look');
      expect(stage.face.waitingFor()).not.toEqual([]);
      await stage.round();
      expect(stage.face.waitingFor()).toEqual([]);
      await stage.client.call('NodeGroups');
    }),
  );

  it(
    'pitfall-23: zero and false are values',
    onStage(
      {
        group: {
          options: {
            ...aGroup(POOL).options,
            scaleDownUtilizationThreshold: 0,
            zeroOrMaxNodeScaling: false,
          },
        },
      },
      async ({ client }) => {
        const defaults = {
          scaleDownUtilizationThreshold: 0.5,
          zeroOrMaxNodeScaling: true,
          ignoreDaemonSetsUtilization: true,
        };
        const answer = await client.call('NodeGroupGetOptions', { id: 'workers', defaults });
        expect(answer['nodeGroupAutoscalingOptions']).toMatchObject({
          scaleDownUtilizationThreshold: 0,
          zeroOrMaxNodeScaling: false,
          ignoreDaemonSetsUtilization: true,
          MaxNodeProvisionDuration: { seconds: '900' },
        });
      },
    ),
  );

  it(
    'pitfall-24: a machine whose VM vanished leaves the group by itself',
    onStage({}, async (stage) => {
      const { client, hypervisor, clock } = stage;
      await grow(client, 2);
      await stage.rest();
      const [id = ''] = await ids(client);
      hypervisor.state.vms.delete(Number(id.split('/').at(-1)));
      await stage.round();
      expect(await target(client)).toBe(2);
      await clock.advance(6 * 60_000);
      await stage.round();
      await stage.rest();
      expect(await target(client)).toBe(1);
      expect(await ids(client)).not.toContain(id);
    }),
  );
});
