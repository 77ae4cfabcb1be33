// SPDX-License-Identifier: Apache-2.0
// Pools that are only ProxmoxPool objects, with several replicas whose records are objects, too: every replica serves the
// same pools, and another one continues the work of a leader.
import { beforeAll, describe, it, type TestContext } from 'vitest';
import { RpcClient } from '../interop/client.ts';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { startPods } from './support/autoscaler/workload.ts';
import { BUILD_TIMEOUT_MS, buildKubectl } from './support/command-line-tools.ts';
import { listNodes } from './support/kube-objects.ts';
import { accountKubeconfig, applyManifests, applyStateManifests } from './support/manifests.ts';
import { POOL_SIZE, PoolKubectl } from './support/pool-kubectl.ts';
import {
  findFollower,
  requireLeader,
  startReplicaSet,
  TAKEOVER_MS,
  waitForNodes,
} from './support/replica-set.ts';
import {
  countVmTasks,
  listLeftovers,
  listVmsOfPool,
  type Replica,
  startSite,
  waitUntilReady,
} from './support/simulated-site.ts';
import { IS_SAMPLE } from './support/standalone-site.ts';

const POOL_AUDIT_RULES = [
  {
    level: 'Metadata',
    users: ['system:serviceaccount:pvescaler:pvescaler'],
    verbs: ['create', 'update', 'patch', 'delete'],
    resources: [{ group: 'pvescaler.dev', resources: ['proxmoxpools', 'proxmoxpools/status'] }],
  },
  { level: 'None' },
];
const FROM = { image: 'noble' };

/** Maximum sizes by node group, as the Cluster Autoscaler reads them at the beginning of a loop. */
async function readGroups(client: RpcClient): Promise<Readonly<Record<string, number>>> {
  await client.call('Refresh', {});
  const { nodeGroups } = await client.call('NodeGroups', {});
  return Object.fromEntries(
    nodeGroups.map(({ id, maxSize }: { id: string; maxSize: number }) => [id, maxSize]),
  );
}

async function waitForPasses({ health }: Replica, count: number): Promise<void> {
  let first: number | undefined;
  await waitUntil(`${count} passes`, async () => {
    const text = await (await fetch(`${health}/metrics`)).text();
    const [, passes = '0'] =
      /^pvescaler_reconciles_total\{outcome="success"\} (\d+)/m.exec(text) ?? [];
    first ??= Number(passes);
    return Number(passes) >= first + count;
  });
}

beforeAll(() => void buildKubectl(), BUILD_TIMEOUT_MS);

describe.skipIf(IS_SAMPLE).concurrent('pools that are objects, with several replicas', () => {
  it(
    'are served by each replica as they are applied, changed and deleted, while the leader is killed',
    async (context) => {
      const set = await startReplicaSet(context, {
        hasNoPools: true,
        auditRules: POOL_AUDIT_RULES,
      });
      const { expect, plane, site, replicas } = set;
      const kubectl = new PoolKubectl(plane);
      const clients = new Map<string, RpcClient>();
      for (const { name, grpc } of replicas.values()) {
        const client = new RpcClient(grpc, 'c.proto');
        context.onTestFinished(() => client.close());
        clients.set(name, client);
      }
      const untilServed = (expected: Readonly<Record<string, number>>) =>
        waitUntil(`each replica serves ${JSON.stringify(expected)}`, async () => {
          for (const [name, client] of clients) {
            const groups = await readGroups(client);
            expect({ name, groups }).toEqual({ name, groups: expected });
          }
          return true;
        });

      const fixed = { size: POOL_SIZE, from: FROM, autoscaling: false, limits: { min: 1, max: 3 } };
      await kubectl.apply('fixed', fixed);
      await kubectl.apply('web', { size: POOL_SIZE, from: FROM, limits: { max: 4 } });
      await untilServed({ fixed: 1, web: 4 });
      const web = { size: POOL_SIZE, from: FROM, limits: { max: 8 } };
      await kubectl.apply('web', web);
      await kubectl.run('scale', 'pvp', 'fixed', '--replicas=2');
      await untilServed({ fixed: 2, web: 8 });
      await waitForNodes(set, 2);

      // At rest: nobody writes, and applying again changes nothing.
      await waitUntil('its status is current', async () => {
        const { metadata, status } = await kubectl.read('fixed');
        return status?.readyReplicas === 2 && status.observedGeneration === metadata.generation;
      });
      const leader = await requireLeader(set);
      const before = plane.readAuditLog().length;
      const { resourceVersion } = (await kubectl.read('fixed')).metadata;
      await kubectl.apply('fixed', fixed);
      await kubectl.apply('web', web);
      expect(await kubectl.diff('fixed', fixed)).toBe('');
      await waitForPasses(leader, 3);
      expect(plane.readAuditLog().slice(before)).toEqual([]);
      expect((await kubectl.read('fixed')).metadata.resourceVersion).toBe(resourceVersion);
      expect((await kubectl.read('fixed')).spec['replicas']).toBe(2);

      const follower = await findFollower(set);
      const begun = site.waitForCreations(5);
      await clients.get(follower.name)?.call('NodeGroupIncreaseSize', { id: 'web', delta: 6 });
      await begun;
      leader.program.sendSignal('SIGKILL');
      replicas.delete(leader.name);
      clients.delete(leader.name);
      await waitForNodes(set, 8);
      expect(countVmTasks(site)).toEqual({ created: 8, destroyed: 0 });

      await kubectl.run('delete', 'pvp', 'web', '--timeout=240s');
      expect(listVmsOfPool(site, 'web')).toEqual([]);
      await untilServed({ fixed: 2 });
      await waitForNodes(set, 2);
      expect(countVmTasks(site)).toEqual({ created: 8, destroyed: 6 });
    },
    6 * TAKEOVER_MS,
  );

  it(
    'get a machine for a pending pod in mode standalone, and lose it under the next leader',
    async (context) => {
      const { expect } = context;
      const plane = await startStandalonePlane(context);
      const site = await startSite({
        plane,
        distribution: 'k3s',
        kubeconfig: await accountKubeconfig(plane),
        stores: 'kubernetes',
        hasNoPools: true,
        onTestFinished: context.onTestFinished,
      });
      context.onTestFinished(() => site.close());
      const kubectl = new PoolKubectl(plane);
      await kubectl.apply('pods', {
        size: POOL_SIZE,
        from: FROM,
        labels: { tier: 'object' },
        scaleUp: { stabilizationWindow: '1s' },
        scaleDown: { unneededTime: '5s', delayAfterAdd: '0s' },
      });
      const first = await site.serve('first');
      await waitUntilReady(first);
      await waitUntil('the first replica leads', () => first.isLeading());
      const second = await site.serve('second');
      await waitUntilReady(second);

      const nodeSelector = { tier: 'object' };
      const workload = await startPods(plane.api, { name: 'pod', count: 1, nodeSelector });
      await waitUntil('the pod runs', () => workload.running());
      first.program.sendSignal('SIGTERM');
      expect(await first.program.waitForExit()).toBe(0);
      await waitUntil('the second replica leads', () => second.isLeading());
      await waitForPasses(second, 2);
      expect(listVmsOfPool(site, 'pods')).toHaveLength(1);
      await workload.remove();
      await waitUntil('no Node is left', async () => (await listNodes(plane.api)).length === 0);
      await waitUntil(
        'the status says so',
        async () => (await kubectl.read('pods')).status?.replicas === 0,
      );
      expect(countVmTasks(site)).toEqual({ created: 1, destroyed: 1 });
      expect(listLeftovers(site)).toEqual({ vms: [], isos: [] });
      await kubectl.run('delete', 'pvp', 'pods', '--timeout=240s');
    },
    4 * TAKEOVER_MS,
  );
});

async function startStandalonePlane({ onTestFinished }: TestContext): Promise<ControlPlane> {
  const plane = await startControlPlane();
  onTestFinished(() => plane.stop());
  await applyManifests(plane);
  await applyStateManifests(plane);
  return plane;
}
