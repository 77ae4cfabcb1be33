// SPDX-License-Identifier: Apache-2.0
// The Cluster Autoscaler's day, as each generation of it speaks: its loop in the order in which it calls, from nothing
// to three nodes and back, with its own proto file and what its own code would make of the answers.
import { describe, expect, it } from 'vitest';
import type { Answer, Generation, RpcClient } from './client.ts';
import { fakeNode, vmCount } from './expectations.ts';
import { defaultsOf, readOptions } from './generation-options.ts';
import { aGroup, aPool, onStage, type Stage } from './stage.ts';

class Autoscaler {
  readonly #client: RpcClient;
  readonly #generation: Generation;
  /** Provider ids of Nodes that are there. */
  readonly registered = new Set<string>();

  constructor(client: RpcClient, generation: Generation) {
    this.#client = client;
    this.#generation = generation;
  }

  /** One loop without a decision; every answer is used as the core uses it. */
  async loop(): Promise<
    readonly { id: string; target: number; max: number; instances: readonly Answer[] }[]
  > {
    const client = this.#client;
    await client.call('Refresh');
    const { nodeGroups } = await client.call('NodeGroups');
    const known = new Set<string>(nodeGroups.map((group: Answer) => group['id']));
    for (const node of [
      { name: 'control-plane-1', providerID: '' },
      ...[...this.registered].map((id) => ({ name: id, providerID: id })),
    ]) {
      const { nodeGroup } = await client.call('NodeGroupForNode', { node });
      if (nodeGroup.id !== '') expect(known).toContain(nodeGroup.id);
    }
    const seen = [];
    for (const group of nodeGroups) seen.push(await this.#look(group));
    return seen;
  }

  async #look({ id, minSize, maxSize }: Answer) {
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
      defaults: defaultsOf(this.#generation),
    });
    readOptions(this.#generation, options['nodeGroupAutoscalingOptions']);
    const template = await client.call('NodeGroupTemplateNodeInfo', { id });
    this.#readTemplate(template);
    return { id, target, max: maxSize, instances };
  }

  #readTemplate(template: Answer): void {
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
    const answer = await this.#client.call('PricingPodPrice', { pod, ...span });
    expect(answer['price']).toBeCloseTo(2 * (0.5 * 0.01 + 0.002), 9);
  }

  async join(instances: readonly Answer[]): Promise<void> {
    for (const one of instances) this.registered.add(one['id']);
  }
}

async function aDay(stage: Stage, generation: Generation): Promise<void> {
  const client = stage.clientOf(generation);
  const autoscaler = new Autoscaler(client, generation);
  await autoscaler.startUp();
  const [empty] = await autoscaler.loop();
  expect(empty).toMatchObject({ id: 'workers', target: 0, instances: [] });
  await autoscaler.price('workers');
  await client.call('NodeGroupIncreaseSize', { id: 'workers', delta: 3 });
  const [accepted] = await autoscaler.loop();
  expect(accepted?.target).toBe(3);
  expect(accepted?.instances).toHaveLength(3);
  for (let round = 0; round < 30; round += 1) {
    await stage.round();
    const [now] = await autoscaler.loop();
    expect(now?.target).toBe(3);
    expect(now?.instances).toHaveLength(3);
  }
  const [up] = await autoscaler.loop();
  expect(up?.instances.map((one) => one['status'].instanceState)).toEqual(
    Array.from({ length: 3 }, () => 'instanceRunning'),
  );
  await autoscaler.join(up?.instances ?? []);
  // Single deletions at the same time, as without a batching interval.
  await Promise.all(
    [...autoscaler.registered].map((id) =>
      client.call('NodeGroupDeleteNodes', { id: 'workers', nodes: [{ name: id, providerID: id }] }),
    ),
  );
  const [leaving] = await autoscaler.loop();
  expect(leaving?.target).toBe(0);
  expect(leaving?.instances.map((one) => one['status'].instanceState)).toEqual(
    Array.from({ length: 3 }, () => 'instanceDeleting'),
  );
  await stage.rest();
  const [gone] = await autoscaler.loop();
  expect(gone).toMatchObject({ target: 0, instances: [] });
  expect(vmCount(stage)).toBe(0);
  await client.call('Cleanup');
}

describe('the autoscaler’s day', () => {
  it.each(['a0', 'a', 'b', 'c'] as const)('generation %s, from zero and back', (generation) =>
    onStage({}, (stage) => aDay(stage, generation))(),
  );

  it.each(['a0', 'a', 'b', 'c'] as const)(
    'generation %s, with options of the group’s own',
    (generation) => {
      const options = { ...aGroup(aPool()).options, scaleDownUnneededTimeMs: 120_000 };
      return onStage({ group: { options } }, (stage) => aDay(stage, generation))();
    },
  );

  it(
    'a scale-up that timed out is undone without touching what was made (1.36 and later)',
    onStage({}, async (stage) => {
      const { client } = stage;
      await client.call('NodeGroupIncreaseSize', { id: 'workers', delta: 2 });
      for (let round = 0; round < 5; round += 1) await stage.round();
      await client.call('NodeGroupDecreaseTargetSize', { id: 'workers', delta: -2 });
      const { instances } = await client.call('NodeGroupNodes', { id: 'workers' });
      for (const { id } of instances)
        await client.call('NodeGroupDeleteNodes', { id: 'workers', nodes: [fakeNode(id)] });
      expect((await client.call('NodeGroupTargetSize', { id: 'workers' }))['targetSize']).toBe(0);
      await stage.rest();
      expect(vmCount(stage)).toBe(0);
      expect((await client.call('NodeGroupTargetSize', { id: 'workers' }))['targetSize']).toBe(0);
    }),
  );
});
