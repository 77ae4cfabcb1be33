// SPDX-License-Identifier: Apache-2.0
// Mode standalone on a real control plane: many pods over three pools, the rules of the scheduler, disruption budgets, full
// and lost hosts. At the end of each scenario every pod that can run runs, on few nodes, and nothing is leaked.
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { waitUntil } from './controlplane/index.ts';
import { listEvictions } from './support/eviction-record.ts';
import { findNode, listNodes, listNodesOfPool, readReadiness } from './support/kube-objects.ts';
import { POOL } from './support/simulated-site.ts';
import {
  DEDICATED,
  type Deployment,
  HOSTS,
  IS_SAMPLE,
  LARGE,
  LIMIT_MS,
  StandaloneSite,
} from './support/standalone-site.ts';

const TEST_MS = 3 * LIMIT_MS;
const HOSTNAME = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';
const ON_SMALL = { nodeSelector: { tier: 'small' } };
const ON_DEDICATED = {
  nodeSelector: { 'autoscaler.proxmox/group': DEDICATED },
  tolerations: [{ key: 'dedicated', operator: 'Exists' }],
};
/** VMs of other users that leave 5 GiB on each host, after the reserve. */
const OTHERS = HOSTS.map((host, index) => ({
  id: 900 + index,
  host,
  config: { name: `other-${host}`, memory: String(57 * 1_024), cores: '1' },
  running: true,
}));

let env: StandaloneSite;
beforeAll(async () => {
  env = await StandaloneSite.start({ vms: OTHERS });
  await env.serve();
});
// Also after a failure, so that the next scenario begins without workloads and machines.
afterEach(() => env.removeWorkloads(), LIMIT_MS + 60_000);
afterAll(() => env.close());

function requiredOn(app: string, topologyKey: string) {
  const term = { topologyKey, labelSelector: { matchLabels: { app } } };
  return { requiredDuringSchedulingIgnoredDuringExecution: [term] };
}

function spreadOver(app: string, topologyKey: string) {
  const labelSelector = { matchLabels: { app } };
  return { maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule', labelSelector };
}

/** Pods by their zone or node. */
async function countBy(app: string, label: string): Promise<Readonly<Record<string, number>>> {
  const nodes = await listNodes(env.plane.api);
  const counts: Record<string, number> = {};
  for (const name of await env.nodesOf(app)) {
    const value = nodes.find(({ metadata }) => metadata.name === name)?.metadata.labels?.[label];
    counts[value ?? ''] = (counts[value ?? ''] ?? 0) + 1;
  }
  return counts;
}

it(
  'uses the next pool when the hosts are too full, says so when all are, and goes on when there is space',
  async () => {
    // 8 GiB machines of pool large fit on no host, two of 2 GiB of pool workers do.
    await env.deploy({ name: 'next', replicas: 2, requests: { cpu: '1500m', memory: '500Mi' } });
    await env.waitUntilRunning('next', 2);
    expect(await listNodesOfPool(env.plane.api, POOL)).toHaveLength(2);
    await env.deploy({ name: 'full', replicas: 2, requests: { cpu: '1', memory: '5Gi' } });
    await waitUntil('the pods exist', async () => (await env.pods('full')).length === 2);
    const [pod] = await env.pods('full');
    const name = pod?.metadata.name ?? '';
    expect(await env.waitForEvent(name, 'NotTriggerScaleUp')).toMatch(/pve1.*GiB/);
    const { exitCode, out } = await env.site.runCli('explain', 'pod', name);
    expect({ exitCode, out }).toMatchObject({
      exitCode: 0,
      out: expect.stringMatching(/pool large.*pve1.*8.*GiB/s),
    });
    for (const { id } of OTHERS) env.site.sim.externalChanges.delete(id);
    await env.waitUntilRunning('full', 2);
    await env.expectSettled();
  },
  TEST_MS,
);

it(
  'runs 200 pods of different sizes on machines of three pools',
  async () => {
    await env.deploy(
      { name: 'web', replicas: 60, requests: { cpu: '100m', memory: '128Mi' }, pod: ON_SMALL },
      { name: 'api', replicas: 40, requests: { cpu: '250m', memory: '256Mi' } },
      { name: 'cache', replicas: 24, requests: { cpu: '200m', memory: '2Gi' } },
      { name: 'batch', replicas: 30, requests: { cpu: '500m', memory: '200Mi' } },
      { name: 'tiny', replicas: 40, requests: { cpu: '20m', memory: '32Mi' } },
      { name: 'gpu', replicas: 6, requests: { cpu: '900m', memory: '1Gi' }, pod: ON_DEDICATED },
    );
    await waitUntil('all pods exist', async () => (await env.pods()).length === 200, LIMIT_MS);
    await env.expectSettled();
    for (const pool of [POOL, LARGE, DEDICATED])
      expect((await listNodesOfPool(env.plane.api, pool)).length, pool).toBeGreaterThan(0);
  },
  TEST_MS,
);

it(
  'respects anti-affinity, topology spread and taints',
  async () => {
    const requests = { cpu: '200m', memory: '100Mi' };
    await env.deploy(
      {
        name: 'apart',
        replicas: 4,
        requests,
        pod: { affinity: { podAntiAffinity: requiredOn('apart', HOSTNAME) } },
      },
      { name: 'tainted', replicas: 2, requests, pod: ON_DEDICATED },
    );
    await env.waitUntilRunning('apart', 4);
    await env.waitUntilRunning('tainted', 2);
    // With nodes on several hosts: kube-scheduler spreads only over zones that have a node at that time.
    await env.deploy(
      {
        name: 'zones',
        replicas: 8,
        requests,
        pod: { topologySpreadConstraints: [spreadOver('zones', ZONE)] },
      },
      {
        name: 'together',
        replicas: 3,
        requests,
        pod: { affinity: { podAffinity: requiredOn('together', ZONE) } },
      },
    );
    await waitUntil('all pods exist', async () => (await env.pods()).length === 17, LIMIT_MS);
    await env.expectSettled();
    expect(Object.values(await countBy('apart', HOSTNAME))).toEqual([1, 1, 1, 1]);
    // The number of zones is that of the hosts with a node; the counts differ by one at most.
    const zones = Object.values(await countBy('zones', ZONE));
    expect(Math.max(...zones) - Math.min(...zones)).toBeLessThanOrEqual(1);
    expect(Object.keys(await countBy('together', ZONE))).toHaveLength(1);
    const dedicated = await listNodesOfPool(env.plane.api, DEDICATED);
    expect(dedicated.map(({ metadata }) => metadata.name)).toEqual(
      expect.arrayContaining([...(await env.nodesOf('tainted'))]),
    );
    const others = (await env.pods()).filter(
      ({ metadata }) => metadata.labels?.['app'] !== 'tainted',
    );
    for (const { spec } of others)
      expect(dedicated.map(({ metadata }) => metadata.name)).not.toContain(spec.nodeName);
  },
  TEST_MS,
);

/** Two nodes of pool workers, each with a large pod and half of the small pods. */
async function fillTwoNodes(small: Deployment): Promise<void> {
  const wide = { cpu: '1200m', memory: '300Mi' };
  await env.deploy({ name: 'wide', replicas: 2, requests: wide, pod: ON_SMALL });
  await env.waitUntilRunning('wide', 2);
  const { name, pod } = small;
  const spread = { ...spreadOver(name, HOSTNAME), whenUnsatisfiable: 'ScheduleAnyway' };
  await env.deploy({ ...small, pod: { ...pod, topologySpreadConstraints: [spread] } });
  await env.waitUntilRunning(name, small.replicas);
  expect(new Set(await env.nodesOf(name)).size).toBe(2);
}

it(
  'evicts one pod after the other when their budget allows one disruption',
  async () => {
    await fillTwoNodes({
      name: 'guarded',
      replicas: 4,
      requests: { cpu: '100m', memory: '50Mi' },
      pod: ON_SMALL,
      maxUnavailable: 1,
    });
    const before = listEvictions(env.plane).length;
    await env.scale('wide', 0);
    await waitUntil('one machine is left', () => env.machines.length === 1, LIMIT_MS);
    await env.expectSettled();
    expect(listEvictions(env.plane).length).toBe(before + 2);
  },
  TEST_MS,
);

it.skipIf(IS_SAMPLE)(
  'undoes a drain that is blocked, records why, and finishes it when the budget allows',
  async () => {
    // A new pod is ready after 25 s: the second eviction is refused until the drain times out.
    await fillTwoNodes({
      name: 'slow',
      replicas: 4,
      requests: { cpu: '100m', memory: '50Mi' },
      pod: ON_SMALL,
      container: { readinessProbe: { initialDelaySeconds: 5_000, exec: { command: ['true'] } } },
      maxUnavailable: 1,
    });
    const nodes = [...new Set(await env.nodesOf('slow'))];
    await env.scale('wide', 0);
    const undone = await waitUntil(
      'a drain is undone',
      async () => {
        for (const node of nodes) {
          const [note] = await env.events(node, 'DrainTimedOut');
          if (note !== undefined) return { node, note };
        }
        return undefined;
      },
      LIMIT_MS,
    );
    expect(undone.note).toMatch(/PodDisruptionBudget slow allows no disruption/);
    const node = await findNode(env.plane.api, undone.node);
    expect(node && readReadiness(node)).toBe('True');
    await waitUntil('one machine is left', () => env.machines.length === 1, LIMIT_MS);
    await env.expectSettled();
  },
  TEST_MS,
);

it.skipIf(IS_SAMPLE)(
  'replaces the nodes of a lost host, and removes what is too much when the host is back',
  async () => {
    const gone = { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' };
    await env.deploy({
      name: 'moved',
      replicas: 4,
      requests: { cpu: '1200m', memory: '300Mi' },
      pod: { ...ON_SMALL, tolerations: [{ ...gone, tolerationSeconds: 1 }] },
    });
    await env.waitUntilRunning('moved', 4);
    // The first host is the only endpoint: without it the region could not be read.
    const isOther = ({ id, host }: { id: number; host: string }) =>
      env.machines.includes(id) && host !== HOSTS[0];
    const host = env.site.sim.inspect().vms.find(isOther)?.host ?? '';
    expect(host).not.toBe('');
    env.site.sim.externalChanges.hostDown(host);
    await waitUntil(
      'the pods run on other hosts',
      async () => {
        const zones = await countBy('moved', ZONE);
        const ready = (await env.pods('moved')).filter((pod) => readReadiness(pod) === 'True');
        return ready.length === 4 && zones[host] === undefined;
      },
      LIMIT_MS,
    );
    env.site.sim.externalChanges.hostUp(host);
    await env.expectSettled();
  },
  TEST_MS,
);
