// SPDX-License-Identifier: Apache-2.0
// Three replicas of `serve` in mode externalgrpc behind a Service, whose records are objects of the cluster.
import type { TestContext } from 'vitest';
import { systemClock } from '../../../src/system/index.ts';
import { RpcClient } from '../../interop/client.ts';
import {
  type ControlPlane,
  type ControlPlaneOptions,
  startControlPlane,
  waitUntil,
} from '../controlplane/index.ts';
import { listNodes, readReadiness } from './kube-objects.ts';
import { accountKubeconfig, applyManifests, applyStateManifests } from './manifests.ts';
import { type ReplicaService, startReplicaService } from './replica-service.ts';
import {
  countVmTasks,
  listLeftovers,
  POOL,
  type Replica,
  type SimulatedSite,
  type SiteOptions,
  startSite,
  waitUntilReady,
} from './simulated-site.ts';

/** The Lease has to expire, and the successor waits for requests that may still be in flight. */
export const TAKEOVER_MS = 180_000;
export const NAMES = ['a', 'b', 'c'] as const;

export interface ReplicaSet {
  readonly expect: TestContext['expect'];
  readonly plane: ControlPlane;
  readonly site: SimulatedSite;
  readonly service: ReplicaService;
  readonly replicas: Map<string, Replica>;
  /** Through the Service. */
  readonly client: RpcClient;
}

interface ReplicaSetOptions
  extends Pick<SiteOptions, 'hasNoPools'>,
    Pick<ControlPlaneOptions, 'auditRules'> {}

export async function startReplicaSet(
  { expect, onTestFinished }: TestContext,
  { hasNoPools = false, ...planeOptions }: ReplicaSetOptions = {},
): Promise<ReplicaSet> {
  const plane = await startControlPlane(planeOptions);
  onTestFinished(() => plane.stop());
  await applyManifests(plane);
  await applyStateManifests(plane);
  const site = await startSite({
    plane,
    distribution: 'kubeadm',
    kubeconfig: await accountKubeconfig(plane),
    mode: 'externalgrpc',
    stores: 'kubernetes',
    hasOwnGrpc: true,
    hosts: 5,
    maxMachines: 60,
    hasNoPools,
    onTestFinished,
  });
  onTestFinished(() => site.close());
  const service = await startReplicaService();
  onTestFinished(() => service.close());
  const client = new RpcClient(service.address, 'c.proto');
  onTestFinished(() => client.close());
  const set = { expect, plane, site, service, replicas: new Map(), client };
  await Promise.all(NAMES.map((name) => startReplica(set, name)));
  await waitUntil('a replica leads', async () => (await findLeader(set)) !== undefined);
  return set;
}

export async function startReplica({ site, service, replicas }: ReplicaSet, name: string) {
  const replica = await site.serve(name);
  await waitUntilReady(replica);
  service.add(replica);
  replicas.set(name, replica);
  return replica;
}

export async function findLeader({ replicas }: ReplicaSet): Promise<Replica | undefined> {
  for (const replica of replicas.values())
    if (await replica.isLeading().catch(() => false)) return replica;
  return undefined;
}

export async function requireLeader(set: ReplicaSet): Promise<Replica> {
  const leader = await findLeader(set);
  if (leader === undefined) throw new Error('no replica leads');
  return leader;
}

export async function findFollower(set: ReplicaSet): Promise<Replica> {
  const leader = await requireLeader(set);
  const follower = [...set.replicas.values()].find((one) => one !== leader);
  if (follower === undefined) throw new Error('there is no other replica');
  return follower;
}

/** That of the Cluster Autoscaler. */
const READ_DEADLINE_MS = 5_000;
/** A request that is accepted late, because the machine is loaded, would count twice if it were sent again. */
const REQUEST_DEADLINE_MS = 60_000;

const READS = [
  ['NodeGroups', {}],
  ['NodeGroupTargetSize', { id: POOL }],
  ['NodeGroupNodes', { id: POOL }],
] as const;

/** Calls as the autoscaler does, until stopped; the longest time in which calls failed. */
export function watchCalls({ client }: ReplicaSet) {
  const stop = new AbortController();
  let longestMs = 0;
  const errors = new Set<string>();
  const watching = (async () => {
    let lastSuccessAt = systemClock.monotonic();
    while (!stop.signal.aborted) {
      for (const [rpc, request] of READS) {
        const error = await client.call(rpc, request, { deadlineMs: READ_DEADLINE_MS }).then(
          () => undefined,
          (failure: Error) => failure,
        );
        if (error === undefined) lastSuccessAt = systemClock.monotonic();
        else errors.add(error.message);
        longestMs = Math.max(longestMs, systemClock.monotonic() - lastSuccessAt);
      }
      await systemClock.sleep(250, { signal: stop.signal }).catch(() => undefined);
    }
  })();
  return {
    end: async () => {
      stop.abort();
      await watching;
      return { longestMs, errors: [...errors] };
    },
  };
}

/** Repeats a call that is refused, as the autoscaler's next loop does. */
export async function increaseSize(client: RpcClient, delta: number): Promise<void> {
  await waitUntil(
    'the increase is accepted',
    async () => {
      await client.call(
        'NodeGroupIncreaseSize',
        { id: POOL, delta },
        { deadlineMs: REQUEST_DEADLINE_MS },
      );
      return true;
    },
    TAKEOVER_MS,
  );
}

export async function targetSize(client: RpcClient): Promise<number> {
  return (await client.call('NodeGroupTargetSize', { id: POOL }))['targetSize'];
}

/** Every VM has one Node and every Node one VM. */
export async function waitForNodes({ plane, site }: ReplicaSet, count: number): Promise<void> {
  await waitUntil(
    `${count} ready Nodes`,
    async () => {
      const nodes = await listNodes(plane.api);
      const ids = nodes
        .filter((node) => readReadiness(node) === 'True')
        .map(({ spec }) => spec.providerID);
      const vms = site.sim.inspect().vms.map(({ id }) => `proxmox://lab/${id}`);
      return vms.length === count && ids.length === count && vms.every((id) => ids.includes(id));
    },
    2 * TAKEOVER_MS,
  );
}

interface Emptying {
  /** Since the start, if machines were deleted before. */
  readonly created?: number;
  readonly nodesLimitMs?: number;
}

export async function scaleToZero(
  set: ReplicaSet,
  size: number,
  { created = size, nodesLimitMs = 60_000 }: Emptying = {},
): Promise<void> {
  const { expect, plane, site, client } = set;
  const { instances } = await client.call('NodeGroupNodes', { id: POOL });
  const nodes = instances.map(({ id }: { id: string }) => ({ name: id, providerID: id }));
  expect(nodes).toHaveLength(size);
  const byId = new Map(
    (await listNodes(plane.api)).map(({ metadata, spec }) => [spec.providerID, metadata.name]),
  );
  await client.call('NodeGroupDeleteNodes', {
    id: POOL,
    nodes: nodes.map(({ providerID }: { providerID: string }) => ({
      providerID,
      name: byId.get(providerID),
    })),
  });
  await waitUntil('all VMs are gone', () => site.sim.inspect().vms.length === 0, TAKEOVER_MS);
  // A Node without a VM is removed by a driver that has seen it for `cleanup.lostAfter`.
  await waitUntil(
    'all Nodes are deleted',
    async () => {
      const names = (await listNodes(plane.api)).map(({ metadata }) => metadata.name);
      if (names.length > 0) throw new Error(`left: ${names.join(' ')}`);
      return true;
    },
    nodesLimitMs,
  );
  expect(await targetSize(client)).toBe(0);
  expect(countVmTasks(site)).toEqual({ created, destroyed: created });
  expect(listLeftovers(site)).toEqual({ vms: [], isos: [] });
}
