// SPDX-License-Identifier: Apache-2.0
// A pool with a list of sizes: one node group per size, which share the limits of the pool.
import { describe, expect, it } from 'vitest';
import type { RpcClient, RpcResponse } from './client.ts';
import { decodeNode } from './decode-node.ts';
import {
  deleteNodes,
  fakeNode,
  findGroup,
  increaseSize,
  listInstanceIds,
  targetSize,
} from './expectations.ts';
import { aPool, type ServerFixture, withServer } from './test-server.ts';

const GIB = 2 ** 30;
const SMALL = { cpu: 2, memoryBytes: 2 * GIB, diskBytes: 20 * GIB };
const LARGE = { cpu: 4, memoryBytes: 8 * GIB, diskBytes: 20 * GIB };
const nodeGroups = [
  { id: 'workers-small', instanceType: 'small', size: SMALL },
  { id: 'workers-large', instanceType: 'large', size: LARGE },
];

function pools(
  limits: { readonly min?: number; readonly max?: number; readonly cpu?: number } = {},
) {
  const all = { min: 0, max: 10, cpu: 0, memoryBytes: 0, ...limits };
  return [aPool({ size: SMALL, nodeGroups, limits: all })];
}

async function listGroups(client: RpcClient): Promise<Record<string, readonly number[]>> {
  const { nodeGroups: groups } = await client.call('NodeGroups');
  return Object.fromEntries(
    groups.map(({ id, minSize, maxSize }: RpcResponse) => [id, [minSize, maxSize]]),
  );
}

/** After the headroom was counted again. */
async function listGroupsLater({ client, clock, reconcile }: ServerFixture) {
  await clock.advance(5_000);
  await reconcile();
  return listGroups(client);
}

async function sizesOf({ store }: ServerFixture): Promise<readonly number[]> {
  const machines = await store.machines.list();
  return machines
    .filter(({ value }) => value.phase !== 'gone')
    .map(({ value }) => value.size.cpu)
    .toSorted((a, b) => a - b);
}

describe('a pool with a list of sizes', () => {
  it(
    'is one node group per size, and each creates machines of its own size',
    withServer({ pools: pools() }, async (fixture) => {
      const { client, settle } = fixture;
      expect(Object.keys(await listGroups(client))).toEqual(['workers-small', 'workers-large']);
      await increaseSize(client, 2, 'workers-small');
      await increaseSize(client, 1, 'workers-large');
      await settle();
      expect(await sizesOf(fixture)).toEqual([2, 2, 4]);
      expect(await targetSize(client, 'workers-small')).toBe(2);
      expect(await targetSize(client, 'workers-large')).toBe(1);
      for (const group of ['workers-small', 'workers-large']) {
        for (const id of await listInstanceIds(client, group))
          expect(await findGroup(client, fakeNode(id))).toBe(group);
      }
      const { details } = await client.expectError('NodeGroupTargetSize', { id: 'workers' });
      expect(details).toBe('no node group "workers"');
    }),
  );

  it(
    'offers a template and a price per size',
    withServer({ pools: pools() }, async ({ client }) => {
      const template = async (id: string) => {
        const { nodeBytes } = await client.call('NodeGroupTemplateNodeInfo', { id });
        const { metadata, status } = decodeNode(nodeBytes);
        return { labels: metadata.labels, cpu: status.capacity.cpu.string };
      };
      const [small, large] = [await template('workers-small'), await template('workers-large')];
      expect([small.cpu, large.cpu]).toEqual(['2000m', '4000m']);
      const price = async (labels: object) =>
        (await client.call('PricingNodePrice', { node: { name: 'template', labels } }))['price'];
      expect(small.labels).toMatchObject({
        'autoscaler.proxmox/group': 'workers',
        'node.kubernetes.io/instance-type': 'small',
      });
      expect(await price(small.labels)).toBeCloseTo(2 * 0.01 + 2 * 0.002);
      expect(await price(large.labels)).toBeCloseTo(4 * 0.01 + 8 * 0.002);
    }),
  );

  it(
    'shares the maximum of the pool: a group offers what the others leave',
    withServer({ pools: pools({ max: 5, cpu: 14 }) }, async (fixture) => {
      const { client } = fixture;
      expect(await listGroups(client)).toEqual({
        'workers-small': [0, 5],
        'workers-large': [0, 3],
      });
      await increaseSize(client, 2, 'workers-large');
      // 8 of 14 vCPUs are in use.
      expect(await listGroupsLater(fixture)).toEqual({
        'workers-small': [0, 3],
        'workers-large': [0, 3],
      });
      await increaseSize(client, 3, 'workers-small');
      expect(await listGroupsLater(fixture)).toEqual({
        'workers-small': [0, 3],
        'workers-large': [0, 2],
      });
      const refused = await client.expectError('NodeGroupIncreaseSize', {
        id: 'workers-large',
        delta: 1,
      });
      expect(refused.details).toContain('pool workers is limited to 5 machines');
    }),
  );

  it(
    'keeps the minimum in the first size, less the machines of the other sizes',
    withServer({ pools: pools({ min: 2 }) }, async (fixture) => {
      const { client, settle } = fixture;
      await settle();
      expect(await sizesOf(fixture)).toEqual([2, 2]);
      expect(await listGroups(client)).toMatchObject({
        'workers-small': [2, 10],
        'workers-large': [0, 8],
      });
      await increaseSize(client, 3, 'workers-large');
      expect(await listGroupsLater(fixture)).toMatchObject({
        'workers-small': [0, 7],
        'workers-large': [0, 8],
      });
    }),
  );

  it(
    'deletes and cancels only machines of the named group',
    withServer({ pools: pools() }, async (fixture) => {
      const { client, settle } = fixture;
      await increaseSize(client, 1, 'workers-small');
      await settle();
      const [small = ''] = await listInstanceIds(client, 'workers-small');
      const wrong = { id: 'workers-large', nodes: [fakeNode(small)] };
      expect((await client.expectError('NodeGroupDeleteNodes', wrong)).details).toContain(
        'belongs to node group workers-small, not workers-large',
      );
      await increaseSize(client, 2, 'workers-large');
      await increaseSize(client, 2, 'workers-small');
      await client.call('NodeGroupDecreaseTargetSize', { id: 'workers-large', delta: -2 });
      expect(await targetSize(client, 'workers-large')).toBe(0);
      expect(await targetSize(client, 'workers-small')).toBe(3);
      await deleteNodes(client, [fakeNode(small)], 'workers-small');
      expect(await targetSize(client, 'workers-small')).toBe(2);
    }),
  );

  it(
    'a machine of a size that is no longer listed belongs to the group of the nearest size',
    withServer({ pools: pools() }, async ({ client, fleet, settle }) => {
      const size = { ...LARGE, cpu: 3 };
      await fleet.request('workers', 1, { by: 'test', reason: 'an earlier size', size });
      await settle();
      expect(await targetSize(client, 'workers-large')).toBe(1);
      const [id = ''] = await listInstanceIds(client, 'workers-large');
      expect(await findGroup(client, fakeNode(id))).toBe('workers-large');
    }),
  );
});
