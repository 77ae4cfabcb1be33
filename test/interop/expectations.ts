// SPDX-License-Identifier: Apache-2.0
// Calls and checks that many tests of the gRPC server use.
import { expect } from 'vitest';
import type { Machine } from '../../src/model/machine.ts';
import { Unreachable } from '../../src/ports/errors.ts';
import type { RpcClient, RpcResponse } from './client.ts';
import type { ServerFixture } from './test-server.ts';

export const GROUP = 'workers';

export async function targetSize(client: RpcClient, id = GROUP): Promise<number> {
  return (await client.call('NodeGroupTargetSize', { id }))['targetSize'];
}

export async function listInstances(
  client: RpcClient,
  id = GROUP,
): Promise<readonly RpcResponse[]> {
  return (await client.call('NodeGroupNodes', { id }))['instances'];
}

export async function listInstanceIds(client: RpcClient, id = GROUP): Promise<readonly string[]> {
  return (await listInstances(client, id)).map((one) => one['id']);
}

export async function listInstanceStates(
  client: RpcClient,
  id = GROUP,
): Promise<readonly string[]> {
  return (await listInstances(client, id)).map((one) =>
    one['status'].instanceState.replace('instance', ''),
  );
}

export async function findGroup(client: RpcClient, node: object): Promise<string> {
  return (await client.call('NodeGroupForNode', { node }))['nodeGroup'].id;
}

/** The placeholder node that the autoscaler sends for an instance without a Node. */
export function fakeNode(id: string, reason = 'unregistered'): object {
  return {
    name: id,
    providerID: id,
    annotations: { 'k8s.io/cluster-autoscaler/fake-node-reason': reason },
  };
}

export function increaseSize(client: RpcClient, delta: number, id = GROUP): Promise<RpcResponse> {
  return client.call('NodeGroupIncreaseSize', { id, delta });
}

export function deleteNodes(
  client: RpcClient,
  nodes: readonly object[],
  id = GROUP,
): Promise<RpcResponse> {
  return client.call('NodeGroupDeleteNodes', { id, nodes });
}

/** Records that the Node of a machine has joined. */
export async function recordJoin(
  fixture: ServerFixture,
  index: number,
  node: Pick<Machine, 'nodeName' | 'providerId'>,
): Promise<Machine> {
  const record = (await fixture.store.machines.list())[index];
  if (record === undefined) throw new Error(`no machine ${index}`);
  const { value } = await fixture.store.machines.replace(record, { ...record.value, ...node });
  await fixture.fleet.view.refresh();
  return value;
}

/** Proxmox is unreachable for this many reconcile passes. */
export async function simulateOutage(
  fixture: ServerFixture,
  passes: number,
  passMs = 20_000,
): Promise<void> {
  for (let pass = 0; pass < passes; pass += 1) {
    fixture.hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'pve1 does not answer'));
    await fixture.reconcile();
    await fixture.clock.advance(passMs);
  }
}

export function countVms({ hypervisor }: Pick<ServerFixture, 'hypervisor'>): number {
  return [...hypervisor.state.vms.values()].filter((vm) => vm.options.get('template') !== '1')
    .length;
}

/** The server responds, and no intent is open. */
export async function expectUnchanged(
  { client, store }: ServerFixture,
  size: number,
): Promise<void> {
  const open = (await store.intents.list()).filter(({ value }) => value.state === 'open');
  expect(open).toEqual([]);
  expect(await targetSize(client)).toBe(size);
}
