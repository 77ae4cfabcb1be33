// SPDX-License-Identifier: Apache-2.0
// What tests of the face ask again and again.
import { expect } from 'vitest';
import type { Machine } from '../../src/model/machine.ts';
import { Unreachable } from '../../src/ports/errors.ts';
import type { Answer, RpcClient } from './client.ts';
import type { Stage } from './stage.ts';

export const GROUP = 'workers';

export async function target(client: RpcClient, id = GROUP): Promise<number> {
  return (await client.call('NodeGroupTargetSize', { id }))['targetSize'];
}

export async function instances(client: RpcClient, id = GROUP): Promise<readonly Answer[]> {
  return (await client.call('NodeGroupNodes', { id }))['instances'];
}

export async function ids(client: RpcClient, id = GROUP): Promise<readonly string[]> {
  return (await instances(client, id)).map((one) => one['id']);
}

export async function states(client: RpcClient, id = GROUP): Promise<readonly string[]> {
  return (await instances(client, id)).map((one) =>
    one['status'].instanceState.replace('instance', ''),
  );
}

export async function groupOf(client: RpcClient, node: object): Promise<string> {
  return (await client.call('NodeGroupForNode', { node }))['nodeGroup'].id;
}

/** As the autoscaler invents a node for an instance without one. */
export function fakeNode(id: string, reason = 'unregistered'): object {
  return {
    name: id,
    providerID: id,
    annotations: { 'k8s.io/cluster-autoscaler/fake-node-reason': reason },
  };
}

export function grow(client: RpcClient, delta: number, id = GROUP): Promise<Answer> {
  return client.call('NodeGroupIncreaseSize', { id, delta });
}

export function remove(client: RpcClient, nodes: readonly object[], id = GROUP): Promise<Answer> {
  return client.call('NodeGroupDeleteNodes', { id, nodes });
}

/** Its Node has come, with these words of its own. */
export async function joined(
  stage: Stage,
  index: number,
  words: Pick<Machine, 'nodeName' | 'providerId'>,
): Promise<Machine> {
  const record = (await stage.store.machines.list())[index];
  if (record === undefined) throw new Error(`no machine ${index}`);
  const { value } = await stage.store.machines.replace(record, { ...record.value, ...words });
  await stage.fleet.view.refresh();
  return value;
}

/** Proxmox does not answer for so many rounds. */
export async function outage(stage: Stage, rounds: number, roundMs = 20_000): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    stage.hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'pve1 does not answer'));
    await stage.round();
    await stage.clock.advance(roundMs);
  }
}

export function vmCount({ hypervisor }: Pick<Stage, 'hypervisor'>): number {
  return [...hypervisor.state.vms.values()].filter((vm) => vm.options.get('template') !== '1')
    .length;
}

/** Still there, and nothing has changed. */
export async function expectUnharmed({ client, store }: Stage, size: number): Promise<void> {
  const open = (await store.intents.list()).filter(({ value }) => value.state === 'open');
  expect(open).toEqual([]);
  expect(await target(client)).toBe(size);
}
