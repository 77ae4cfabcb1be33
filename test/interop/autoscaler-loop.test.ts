// SPDX-License-Identifier: Apache-2.0
// The main loop of the Cluster Autoscaler, for each generation: the calls in their order, from zero to three nodes and
// back, with the generation's own proto file and the checks that its code makes.
import { describe, expect, it } from 'vitest';
import type { Generation, RpcClient, RpcResponse } from './client.ts';
import { countVms, fakeNode } from './expectations.ts';
import { checkOptions, defaultOptions } from './generation-options.ts';
import { aGroup, aPool, type ServerFixture, withServer } from './test-server.ts';

class Autoscaler {
  readonly #client: RpcClient;
  readonly #generation: Generation;
  /** Provider ids of registered Nodes. */
  readonly registered = new Set<string>();

  constructor(client: RpcClient, generation: Generation) {
    this.#client = client;
    this.#generation = generation;
  }

  /** One loop without a decision; each response is used as the autoscaler uses it. */
  async loop(): Promise<
    readonly { id: string; target: number; max: number; instances: readonly RpcResponse[] }[]
  > {
    const client = this.#client;
    await client.call('Refresh');
    const { nodeGroups } = await client.call('NodeGroups');
    const known = new Set<string>(nodeGroups.map((group: RpcResponse) => group['id']));
    for (const node of [
      { name: 'control-plane-1', providerID: '' },
      ...[...this.registered].map((id) => ({ name: id, providerID: id })),
    ]) {
      const { nodeGroup } = await client.call('NodeGroupForNode', { node });
      if (nodeGroup.id !== '') expect(known).toContain(nodeGroup.id);
    }
    const read = [];
    for (const group of nodeGroups) read.push(await this.#readGroup(group));
    return read;
  }

  async #readGroup({ id, minSize, maxSize }: RpcResponse) {
    const client = this.#client;
    const { targetSize: target } = await client.call('NodeGroupTargetSize', { id });
    expect(maxSize).toBeGreaterThanOrEqual(target);
    expect(minSize).toBe(0);
    const { instances } = await client.call('NodeGroupNodes', { id });
    for (const instance of instances) {
      const { nodeGroup } = await client.call('NodeGroupForNode', { node: fakeNode(instance.id) });
      expect(nodeGroup.id).toBe(id);
    }
    const options = await client.call('NodeGroupGetOptions', {
      id,
      defaults: defaultOptions(this.#generation),
    });
    checkOptions(this.#generation, options['nodeGroupAutoscalingOptions']);
    const template = await client.call('NodeGroupTemplateNodeInfo', { id });
    this.#checkTemplate(template);
    return { id, target, max: maxSize, instances };
  }

  #checkTemplate(template: RpcResponse): void {
    if (this.#generation === 'b' || this.#generation === 'c') {
      expect(template['nodeBytes'].length).toBeGreaterThan(0);
    }
    if (this.#generation === 'c') return;
    const { status, metadata } = template['nodeInfo'];
    expect(Object.keys(status.allocatable)).toEqual(
      expect.arrayContaining(['cpu', 'memory', 'pods', 'ephemeral-storage']),
    );
    expect(status.nodeInfo.architecture).toBe('amd64');
    expect(metadata.labels['kubernetes.io/os']).toBe('linux');
  }

  async startUp(): Promise<void> {
    const { label } = await this.#client.call('GPULabel');
    expect(label).toBe('');
    expect((await this.#client.call('GetAvailableGPUTypes'))['gpuTypes']).toEqual({});
  }

  async price(id: string): Promise<void> {
    const node = { name: `template-node-for-${id}-1`, labels: { 'autoscaler.proxmox/group': id } };
    const isNew = this.#generation === 'b' || this.#generation === 'c';
    const span = isNew
      ? { startTimestamp: { seconds: 0 }, endTimestamp: { seconds: 7_200 } }
      : { startTime: { seconds: 0 }, endTime: { seconds: 7_200 } };
    const { price } = await this.#client.call('PricingNodePrice', { node, ...span });
    expect(price).toBeCloseTo(2 * (2 * 0.01 + 2 * 0.002), 9);
    const pod = {
      spec: {
        containers: [
          { resources: { requests: { cpu: { string: '500m' }, memory: { string: '1Gi' } } } },
        ],
      },
    };
    if (isNew) return;
    const response = await this.#client.call('PricingPodPrice', { pod, ...span });
    expect(response['price']).toBeCloseTo(2 * (0.5 * 0.01 + 0.002), 9);
  }

  async join(instances: readonly RpcResponse[]): Promise<void> {
    for (const one of instances) this.registered.add(one['id']);
  }
}

async function scaleUpAndDown(fixture: ServerFixture, generation: Generation): Promise<void> {
  const client = fixture.clientOf(generation);
  const autoscaler = new Autoscaler(client, generation);
  await autoscaler.startUp();
  const [empty] = await autoscaler.loop();
  expect(empty).toMatchObject({ id: 'workers', target: 0, instances: [] });
  await autoscaler.price('workers');
  await client.call('NodeGroupIncreaseSize', { id: 'workers', delta: 3 });
  const [accepted] = await autoscaler.loop();
  expect(accepted?.target).toBe(3);
  expect(accepted?.instances).toHaveLength(3);
  for (let pass = 0; pass < 30; pass += 1) {
    await fixture.reconcile();
    const [now] = await autoscaler.loop();
    expect(now?.target).toBe(3);
    expect(now?.instances).toHaveLength(3);
  }
  const [up] = await autoscaler.loop();
  expect(up?.instances.map((one) => one['status'].instanceState)).toEqual(
    Array.from({ length: 3 }, () => 'instanceRunning'),
  );
  await autoscaler.join(up?.instances ?? []);
  // Concurrent deletions of one node each, as without a batching interval.
  await Promise.all(
    [...autoscaler.registered].map((id) =>
      client.call('NodeGroupDeleteNodes', { id: 'workers', nodes: [{ name: id, providerID: id }] }),
    ),
  );
  const [deleting] = await autoscaler.loop();
  expect(deleting?.target).toBe(0);
  expect(deleting?.instances.map((one) => one['status'].instanceState)).toEqual(
    Array.from({ length: 3 }, () => 'instanceDeleting'),
  );
  await fixture.settle();
  const [gone] = await autoscaler.loop();
  expect(gone).toMatchObject({ target: 0, instances: [] });
  expect(countVms(fixture)).toBe(0);
  await client.call('Cleanup');
}

describe('the autoscaler loop', () => {
  it.each(['a0', 'a', 'b', 'c'] as const)(
    'generation %s scales from zero to three and back',
    (generation) => withServer({}, (fixture) => scaleUpAndDown(fixture, generation))(),
  );

  it.each(['a0', 'a', 'b', 'c'] as const)(
    'generation %s scales up and down with options set on the group',
    (generation) => {
      const options = { ...aGroup(aPool()).clusterAutoscaler, scaleDownUnneededTimeMs: 120_000 };
      return withServer({ group: { clusterAutoscaler: options } }, (fixture) =>
        scaleUpAndDown(fixture, generation),
      )();
    },
  );

  it(
    'undoes a timed-out scale-up by deleting every instance (1.36 and later)',
    withServer({}, async (fixture) => {
      const { client } = fixture;
      await client.call('NodeGroupIncreaseSize', { id: 'workers', delta: 2 });
      for (let pass = 0; pass < 5; pass += 1) await fixture.reconcile();
      await client.call('NodeGroupDecreaseTargetSize', { id: 'workers', delta: -2 });
      const { instances } = await client.call('NodeGroupNodes', { id: 'workers' });
      for (const { id } of instances)
        await client.call('NodeGroupDeleteNodes', { id: 'workers', nodes: [fakeNode(id)] });
      expect((await client.call('NodeGroupTargetSize', { id: 'workers' }))['targetSize']).toBe(0);
      await fixture.settle();
      expect(countVms(fixture)).toBe(0);
      expect((await client.call('NodeGroupTargetSize', { id: 'workers' }))['targetSize']).toBe(0);
    }),
  );
});
