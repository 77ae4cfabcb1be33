// SPDX-License-Identifier: Apache-2.0
// Three replicas of `serve` in mode externalgrpc, whose records are objects of the cluster: requests to any of them are
// carried out once, whatever happens to the replicas and the API server meanwhile.
import { describe, it, type TestContext } from 'vitest';
import { systemClock } from '../../src/system/index.ts';
import { RpcClient } from '../interop/client.ts';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { listNodes, readReadiness } from './support/kube-objects.ts';
import { accountKubeconfig, applyManifests, applyStateManifests } from './support/manifests.ts';
import { type ReplicaService, startReplicaService } from './support/replica-service.ts';
import {
  countVmTasks,
  listLeftovers,
  POOL,
  type Replica,
  type SimulatedSite,
  startSite,
  waitUntilReady,
} from './support/simulated-site.ts';
import { IS_SAMPLE } from './support/standalone-site.ts';

/** The Lease has to expire, and the successor waits for requests that may still be in flight. */
const TAKEOVER_MS = 180_000;
/** The autoscaler's default `--scan-interval`. */
const LOOP_MS = 10_000;
const NAMES = ['a', 'b', 'c'] as const;

interface Scenario {
  readonly expect: TestContext['expect'];
  readonly plane: ControlPlane;
  readonly site: SimulatedSite;
  readonly service: ReplicaService;
  readonly replicas: Map<string, Replica>;
  /** Through the Service. */
  readonly client: RpcClient;
}

async function startScenario({ expect, onTestFinished }: TestContext): Promise<Scenario> {
  const plane = await startControlPlane();
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
    onTestFinished,
  });
  onTestFinished(() => site.close());
  const service = await startReplicaService();
  onTestFinished(() => service.close());
  const client = new RpcClient(service.address, 'c.proto');
  onTestFinished(() => client.close());
  const scenario = { expect, plane, site, service, replicas: new Map(), client };
  await Promise.all(NAMES.map((name) => startReplica(scenario, name)));
  await waitUntil('a replica leads', async () => (await findLeader(scenario)) !== undefined);
  return scenario;
}

async function startReplica({ site, service, replicas }: Scenario, name: string) {
  const replica = await site.serve(name);
  await waitUntilReady(replica);
  service.add(replica);
  replicas.set(name, replica);
  return replica;
}

async function findLeader({ replicas }: Scenario): Promise<Replica | undefined> {
  for (const replica of replicas.values())
    if (await replica.isLeading().catch(() => false)) return replica;
  return undefined;
}

async function requireLeader(scenario: Scenario): Promise<Replica> {
  const leader = await findLeader(scenario);
  if (leader === undefined) throw new Error('no replica leads');
  return leader;
}

async function findFollower(scenario: Scenario): Promise<Replica> {
  const leader = await requireLeader(scenario);
  const follower = [...scenario.replicas.values()].find((one) => one !== leader);
  if (follower === undefined) throw new Error('there is no other replica');
  return follower;
}

const READS = [
  ['NodeGroups', {}],
  ['NodeGroupTargetSize', { id: POOL }],
  ['NodeGroupNodes', { id: POOL }],
] as const;

/** Calls as the autoscaler does, until stopped; the longest time in which calls failed. */
function watchCalls({ client }: Scenario) {
  const stop = new AbortController();
  let longestMs = 0;
  const errors = new Set<string>();
  const watching = (async () => {
    let lastSuccessAt = systemClock.monotonic();
    while (!stop.signal.aborted) {
      for (const [rpc, request] of READS) {
        await client.call(rpc, request, { deadlineMs: 5_000 }).then(
          () => {
            lastSuccessAt = systemClock.monotonic();
          },
          (error: Error) => errors.add(error.message),
        );
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
async function increaseSize(client: RpcClient, delta: number): Promise<void> {
  await waitUntil(
    'the increase is accepted',
    async () => {
      await client.call('NodeGroupIncreaseSize', { id: POOL, delta }, { deadlineMs: 5_000 });
      return true;
    },
    TAKEOVER_MS,
  );
}

async function targetSize(client: RpcClient): Promise<number> {
  return (await client.call('NodeGroupTargetSize', { id: POOL }))['targetSize'];
}

/** Every VM has one Node and every Node one VM. */
async function waitForNodes({ plane, site }: Scenario, count: number): Promise<void> {
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

async function scaleToZero(scenario: Scenario, created: number): Promise<void> {
  const { expect, plane, site, client } = scenario;
  const { instances } = await client.call('NodeGroupNodes', { id: POOL });
  const nodes = instances.map(({ id }: { id: string }) => ({ name: id, providerID: id }));
  expect(nodes).toHaveLength(created);
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
  await waitUntil('all Nodes are deleted', async () => (await listNodes(plane.api)).length === 0);
  expect(await targetSize(client)).toBe(0);
  expect(countVmTasks(site)).toEqual({ created, destroyed: created });
  expect(listLeftovers(site)).toEqual({ vms: [], isos: [] });
}

describe.concurrent('three replicas with records in the cluster', () => {
  it(
    'create exactly 50 machines while each of them is replaced, and no call fails for longer than a loop',
    async (context) => {
      const scenario = await startScenario(context);
      const { expect, site, client, replicas } = scenario;
      const calls = watchCalls(scenario);
      const begun = site.waitForCreations(5);
      await increaseSize(client, 30);
      expect(await targetSize(client)).toBe(30);
      await begun;
      for (const [index, name] of NAMES.entries()) {
        replicas.get(name)?.program.sendSignal('SIGTERM');
        expect(await replicas.get(name)?.program.waitForExit()).toBe(0);
        await increaseSize(client, index === 2 ? 6 : 7);
        await startReplica(scenario, name);
      }
      await waitForNodes(scenario, 50);
      const { longestMs, errors } = await calls.end();
      expect(longestMs, errors.join('\n')).toBeLessThan(LOOP_MS);
      expect(countVmTasks(site)).toMatchObject({ created: 50 });
      await scaleToZero(scenario, 50);
    },
    4 * TAKEOVER_MS,
  );

  it(
    'carry out a request to a replica that does not lead, also when the leader is killed',
    async (context) => {
      const scenario = await startScenario(context);
      const { expect, site } = scenario;
      const leader = await requireLeader(scenario);
      const follower = await findFollower(scenario);
      const direct = new RpcClient(follower.grpc, 'c.proto');
      context.onTestFinished(() => direct.close());
      const begun = site.waitForCreations(3);
      await direct.call('NodeGroupIncreaseSize', { id: POOL, delta: 6 });
      expect(await targetSize(direct)).toBe(6);
      await begun;
      leader.program.sendSignal('SIGKILL');
      await direct.call('NodeGroupIncreaseSize', { id: POOL, delta: 4 });
      expect(await targetSize(direct)).toBe(10);
      await waitForNodes(scenario, 10);
      expect(countVmTasks(site)).toMatchObject({ created: 10 });
      await scaleToZero(scenario, 10);
    },
    4 * TAKEOVER_MS,
  );

  it.skipIf(IS_SAMPLE)(
    'lose and repeat nothing when the API server is restarted and the leader is frozen and woken',
    async (context) => {
      const scenario = await startScenario(context);
      const { expect, plane, site, client } = scenario;
      const begun = site.waitForCreations(3);
      await increaseSize(client, 8);
      await begun;
      await plane.killApiServer();
      const stale = await findFollower(scenario);
      await waitUntil(
        'a replica is not ready',
        async () => {
          const answer = await fetch(`${stale.health}/readyz`);
          return answer.status === 503 && (await answer.text()).includes('current records');
        },
        TAKEOVER_MS,
      );
      await plane.startApiServer();
      await waitForNodes(scenario, 8);
      const more = site.waitForCreations(10);
      await increaseSize(client, 8);
      await more;
      const frozen = await requireLeader(scenario);
      frozen.program.sendSignal('SIGSTOP');
      await waitUntil(
        'another replica leads',
        async () => {
          for (const replica of scenario.replicas.values())
            if (replica !== frozen && (await replica.isLeading())) return true;
          return false;
        },
        TAKEOVER_MS,
      );
      const before = site.writes.length;
      await waitForNodes(scenario, 16);
      frozen.program.sendSignal('SIGCONT');
      await waitUntil('it no longer leads', async () => !(await frozen.isLeading()));
      await waitUntilReady(frozen);
      await scaleToZero(scenario, 16);
      const late = site.writes.slice(before).filter(({ replica }) => replica === frozen.name);
      expect(late).toEqual([]);
    },
    6 * TAKEOVER_MS,
  );
});
