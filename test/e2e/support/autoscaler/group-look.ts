// SPDX-License-Identifier: Apache-2.0
// What a loop asks about one node group, in the order and with the messages of the generation.
import { expect } from 'vitest';
import type { Answer, Generation, RpcClient } from '../../../interop/client.ts';
import { defaultsOf, readOptions } from '../../../interop/generation-options.ts';
import { nodeOf } from '../../../interop/node-of.ts';
import type { NodeObject } from '../kube-objects.ts';
import { type Room, roomOf } from './pods.ts';

export interface Group {
  readonly id: string;
  readonly min: number;
  readonly max: number;
  readonly target: number;
  readonly instances: readonly Answer[];
  readonly template: Room;
  /** Members that are registered. */
  readonly nodes: readonly NodeObject[];
}

export interface Caller {
  readonly client: RpcClient;
  readonly generation: Generation;
}

export async function lookAt(
  { client, generation }: Caller,
  { id, minSize, maxSize }: Answer,
  nodes: readonly NodeObject[],
): Promise<Group> {
  const { targetSize: target } = await client.call('NodeGroupTargetSize', { id });
  const { instances } = await client.call('NodeGroupNodes', { id });
  const defaults = defaultsOf(generation);
  const options = await client.call('NodeGroupGetOptions', { id, defaults });
  readOptions(generation, options['nodeGroupAutoscalingOptions']);
  const { labels, allocatable } = await templateOf({ client, generation }, id);
  return {
    id,
    min: minSize,
    max: maxSize,
    target,
    instances,
    template: roomOf(allocatable, labels),
    nodes,
  };
}

/** As the generation reads it: the message in the old field or the bytes in the new one. */
export async function templateOf(
  { client, generation }: Caller,
  id: string,
): Promise<{
  readonly labels: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
}> {
  const answer = await client.call('NodeGroupTemplateNodeInfo', { id });
  const isNew = generation === 'b' || generation === 'c';
  const { metadata, status } = isNew ? nodeOf(answer['nodeBytes']) : answer['nodeInfo'];
  expect(status.conditions).toContainEqual(
    expect.objectContaining({ type: 'Ready', status: 'True' }),
  );
  const quantities = Object.entries<Answer>(status.allocatable);
  return {
    labels: metadata.labels,
    allocatable: Object.fromEntries(quantities.map(([name, one]) => [name, one['string']])),
  };
}
