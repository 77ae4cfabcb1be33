// SPDX-License-Identifier: Apache-2.0
import { expect } from 'vitest';
import type { Generation, RpcClient, RpcResponse } from '../../../interop/client.ts';
import { decodeNode } from '../../../interop/decode-node.ts';

export interface Caller {
  readonly client: RpcClient;
  readonly generation: Generation;
}

/** Default deadline of every call of the autoscaler. */
export const DEADLINE = { deadlineMs: 5_000 };

/** Reads the field that the generation uses: the message in the old field or the bytes in the new one. */
export async function readTemplateNode(
  { client, generation }: Caller,
  id: string,
): Promise<{
  readonly labels: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
}> {
  const answer = await client.call('NodeGroupTemplateNodeInfo', { id }, DEADLINE);
  const isNew = generation === 'b' || generation === 'c';
  const { metadata, status } = isNew ? decodeNode(answer['nodeBytes']) : answer['nodeInfo'];
  expect(status.conditions).toContainEqual(
    expect.objectContaining({ type: 'Ready', status: 'True' }),
  );
  const quantities = Object.entries<RpcResponse>(status.allocatable);
  return {
    labels: metadata.labels,
    allocatable: Object.fromEntries(quantities.map(([name, one]) => [name, one['string']])),
  };
}
