// SPDX-License-Identifier: Apache-2.0
// The built `serve` behind a scripted Cluster Autoscaler of each protocol generation, on a real control plane: pods are
// pending, machines join, and creations fail.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { type ProviderSite, startProvider } from './support/autoscaler/provider-site.ts';
import { readTemplateNode } from './support/autoscaler/template-node.ts';
import { type RunningWorkload, startPods, startReplicas } from './support/autoscaler/workload.ts';
import {
  listNodes,
  listNodesOfPool as listNodesWithPool,
  type NodeObject,
} from './support/kube-objects.ts';
import { applyManifests } from './support/manifests.ts';
import {
  countVmTasks,
  listLeftovers,
  listVmsOfPool as listVmsWithPool,
} from './support/simulated-site.ts';

const GENERATIONS = ['a0', 'a', 'b', 'c'] as const;
const UNMANAGED = 'control-plane-1';
const GROUP_LABEL = 'autoscaler.proxmox/group';

/** One for each generation: the next creation avoids a host whose storage is known to be full. */
const FAILING_HOSTS = { a0: 'pve5', a: 'pve6', b: 'pve7', c: 'pve8' } as const;

/** Pools whose hosts are full or fail have their own hosts, so that they do not affect the other pools. */
const POOLS = [
  ...GENERATIONS.map((one) => renderPool(`gen-${one}`, { hosts: ['pve1', 'pve2', 'pve3'] })),
  renderPool('tight', { hosts: ['pve4'], memory: '20Gi', lot: 'wide' }),
  renderPool('overflow', { hosts: ['pve1', 'pve2', 'pve3'], lot: 'wide' }),
  ...GENERATIONS.flatMap((one) => [
    renderPool(`vanishing-${one}`, { hosts: [FAILING_HOSTS[one]], lot: `sure-${one}` }),
    renderPool(`spare-${one}`, { hosts: ['pve1', 'pve2', 'pve3'], lot: `sure-${one}` }),
  ]),
  ...GENERATIONS.map((one) => renderPool(`silent-${one}`, { hosts: ['pve1', 'pve2', 'pve3'] })),
  renderPool('drained', { hosts: ['pve1', 'pve2', 'pve3'] }),
].join('');

function renderPool(
  name: string,
  { hosts, memory = '2Gi', lot = name }: { hosts: string[]; memory?: string; lot?: string },
): string {
  return `
  - name: ${name}
    from: { image: noble }
    size: { cpu: 2, memory: ${memory}, disk: 20Gi }
    limits: { min: 0, max: 10 }
    labels: { lot: ${lot} }
    placement: { hosts: { allow: [${hosts.join(', ')}] } }`;
}

let plane: ControlPlane;
let provider: ProviderSite;
beforeAll(async () => {
  plane = await startControlPlane();
  await applyManifests(plane);
  // A Node of no pool, without a provider id and without a kubelet: the provider must ignore it.
  await plane.api.create('/api/v1/nodes', { metadata: { name: UNMANAGED } });
  provider = await startProvider({
    plane,
    hosts: 8,
    guests: [{ match: 'silent-*', behaviour: 'hangs' }],
    pools: POOLS,
    onTestFinished: () => undefined,
  });
  for (const host of Object.values(FAILING_HOSTS)) {
    provider.site.sim.faults.add({
      kind: 'task-fails',
      taskType: 'qmcreate',
      host,
      // The task fails in the middle of its work, so that it cleans up.
      delayMs: 100,
      message: 'lvcreate error: No space left on device',
      times: 1,
    });
  }
});
afterAll(async () => {
  await provider?.close();
  await plane?.stop();
});

const listNodesOfPool = (pool: string) => listNodesWithPool(plane.api, pool);
const listVmsOfPool = (pool: string) => listVmsWithPool(provider.site, pool);

async function isPoolEmpty(group: string): Promise<boolean> {
  return listVmsOfPool(group).length === 0 && (await listNodesOfPool(group)).length === 0;
}

async function listPoolsOfPods(
  workload: RunningWorkload,
): Promise<readonly (string | undefined)[]> {
  const there = new Map((await listNodes(plane.api)).map((node) => [node.metadata.name, node]));
  return (await workload.pods())
    .map(({ spec }) => there.get(spec.nodeName ?? '')?.metadata.labels?.[GROUP_LABEL])
    .sort();
}

describe.concurrent('the Cluster Autoscaler', () => {
  it.for(GENERATIONS)(
    'of generation %s scales a pool from zero and back to zero',
    async (generation, { expect }) => {
      const group = `gen-${generation}`;
      const autoscaler = provider.autoscaler(generation, [group]);
      const caller = { client: provider.client(generation), generation };
      await autoscaler.startUp();
      const estimated = (await readTemplateNode(caller, group)).allocatable;
      const nodeSelector = { [GROUP_LABEL]: group };
      const workload = await startPods(plane.api, { name: group, count: 3, nodeSelector });
      await autoscaler.runUntil(() => workload.running());
      expect(listVmsOfPool(group)).toHaveLength(3);
      const joined = await listNodesOfPool(group);
      expect(joined.map(({ spec }) => spec.providerID).sort()).toEqual(
        listVmsOfPool(group)
          .map((id) => `proxmox://lab/${id}`)
          .sort(),
      );
      const real = joined[0]?.status.allocatable ?? {};
      expect(parseAmount(real['memory'])).not.toBe(parseAmount(estimated['memory']));
      await waitUntil('the template has the allocatable resources of the nodes', async () => {
        const { allocatable } = await readTemplateNode(caller, group);
        return ['cpu', 'memory', 'ephemeral-storage', 'pods'].every(
          (name) => parseAmount(allocatable[name]) === parseAmount(real[name]),
        );
      });
      await workload.remove();
      await autoscaler.runUntil(async () => (await workload.gone()) && (await isPoolEmpty(group)));
      expect(await autoscaler.readTarget(group)).toBe(0);
      await autoscaler.runUntil(
        async () => (await autoscaler.runLoop())[0]?.instances.length === 0,
      );
      const [last] = await autoscaler.runLoop();
      expect(last).toMatchObject({ target: 0, instances: [], registered: [] });
      expect(sumByKind(autoscaler.decisions)).toEqual({ grow: 3, shrink: 3 });
      await caller.client.call('Cleanup');
    },
  );

  it('uses the next pool when the host is full, without a request that fails', async ({
    expect,
  }) => {
    const autoscaler = provider.autoscaler('a', ['tight', 'overflow']);
    const workload = await startPods(plane.api, {
      name: 'wide',
      count: 5,
      nodeSelector: { lot: 'wide' },
    });
    await waitForPending(workload);
    await autoscaler.runUntil(() => workload.running());
    expect(autoscaler.decisions).toMatchObject([
      { what: 'grow', group: 'tight', count: 3 },
      { what: 'grow', group: 'overflow', count: 2 },
    ]);
    expect(await listPoolsOfPods(workload)).toEqual([
      'overflow',
      'overflow',
      'tight',
      'tight',
      'tight',
    ]);
    await workload.remove();
    await autoscaler.runUntil(
      async () => (await isPoolEmpty('tight')) && (await isPoolEmpty('overflow')),
    );
    expect(sumByKind(autoscaler.decisions)).toEqual({ grow: 5, shrink: 5 });
  });

  it.for(GENERATIONS)(
    'of generation %s backs off and uses another pool when a creation fails after the call',
    async (generation, { expect }) => {
      const [vanishing, spare] = [`vanishing-${generation}`, `spare-${generation}`];
      const autoscaler = provider.autoscaler(generation, [vanishing, spare]);
      const name = `sure-${generation}`;
      const workload = await startPods(plane.api, { name, count: 1, nodeSelector: { lot: name } });
      await autoscaler.runUntil(() => workload.running());
      expect(autoscaler.decisions).toMatchObject([
        { what: 'grow', group: vanishing, count: 1, targets: [0, 1] },
        {
          what: 'delete-failed',
          group: vanishing,
          count: 1,
          // The failed machine counts until it is deleted: the autoscaler takes a reached target for a success.
          targets: [1, 0],
          errors: [{ errorCode: 'NO_STORAGE_SPACE', instanceErrorClass: 1 }],
        },
        { what: 'grow', group: spare, count: 1, targets: [0, 1] },
      ]);
      expect(autoscaler.isBackedOff(vanishing)).toBe(true);
      expect(listVmsOfPool(vanishing)).toEqual([]);
      expect(await listPoolsOfPods(workload)).toEqual([spare]);
      await workload.remove();
      await autoscaler.runUntil(() => isPoolEmpty(spare));
    },
  );

  it.for(GENERATIONS)(
    'of generation %s deletes a machine that never joins, and the target falls once',
    async (generation, { expect }) => {
      const group = `silent-${generation}`;
      // Long enough that the VM exists before, also on a loaded machine.
      const autoscaler = provider.autoscaler(generation, [group], { provisionMs: 20_000 });
      const nodeSelector = { lot: group };
      const workload = await startPods(plane.api, { name: group, count: 1, nodeSelector });
      await autoscaler.runUntil(() => listVmsOfPool(group).length === 1);
      const undo = generation === 'c' ? [{ what: 'undo', count: 1, targets: [1, 1] }] : [];
      const expected = [
        { what: 'grow', count: 1, targets: [0, 1] },
        // The VM exists, so the decrease cancels nothing.
        ...undo,
        { what: 'delete-unregistered', count: 1, targets: [1, 0] },
      ];
      await autoscaler.runUntil(() => autoscaler.decisions.length === expected.length);
      await autoscaler.runUntil(() => isPoolEmpty(group));
      await autoscaler.runUntil(
        async () => (await autoscaler.runLoop())[0]?.instances.length === 0,
      );
      expect(autoscaler.decisions).toMatchObject(expected);
      expect(autoscaler.isBackedOff(group)).toBe(true);
      expect(await autoscaler.readTarget(group)).toBe(0);
      await workload.remove();
    },
  );

  it('drains a node before its machine is deleted, and its Node is deleted last', async ({
    expect,
  }) => {
    const autoscaler = provider.autoscaler('c', ['drained']);
    const nodeSelector = { [GROUP_LABEL]: 'drained' };
    const large = await startPods(plane.api, { name: 'drained', count: 2, nodeSelector });
    await autoscaler.runUntil(() => large.running());
    const small = await startReplicas(plane.api, { name: 'small', count: 2, nodeSelector });
    await autoscaler.runUntil(() => small.running());
    const before = await listNodesOfPool('drained');
    const vms = new Map(before.map(({ metadata, spec }) => [metadata.name, parseVmId(spec)]));
    expect(new Set((await small.pods()).map(({ spec }) => spec.nodeName)).size).toBe(2);
    await large.remove();
    const isOneLeft = async () => {
      // A Node that is missing while its VM still exists was deleted too early.
      const there = new Set(
        (await listNodesOfPool('drained')).map(({ metadata }) => metadata.name),
      );
      for (const [name, id] of vms) {
        if (!there.has(name)) expect(listVmsOfPool('drained')).not.toContain(id);
      }
      return there.size === 1 && (await small.running());
    };
    await autoscaler.runUntil(isOneLeft);
    const [removal] = autoscaler.removals;
    expect(autoscaler.removals).toHaveLength(1);
    expect(removal?.evicted).toBe(1);
    const gone = vms.get(removal?.node ?? '');
    const ends = provider.site.writes.filter(
      ({ call }) => call.includes(`/qemu/${gone}/status/`) && !call.endsWith('/start'),
    );
    expect(ends.length).toBeGreaterThan(0);
    for (const { at } of ends) expect(at).toBeGreaterThan(removal?.requestedAt ?? Infinity);
    // Both pods run on the remaining node, which stays.
    expect(await listPoolsOfPods(small)).toEqual(['drained', 'drained']);
    expect(sumByKind(autoscaler.decisions)).toEqual({ grow: 2, shrink: 1 });
    await small.remove();
    await autoscaler.runUntil(() => isPoolEmpty('drained'));
  });
});

it('nothing is left behind in Proxmox or Kubernetes', async () => {
  const names = async () => (await listNodes(plane.api)).map(({ metadata }) => metadata.name);
  await waitUntil('all Nodes of the pools are deleted', async () => (await names()).length <= 1);
  expect(await names()).toEqual([UNMANAGED]);
  expect(listLeftovers(provider.site)).toEqual({ vms: [], isos: [] });
  // 4 × 3, 3 + 2, 4 in the spare pools, 4 that never joined, and 2 in the drained pool.
  expect(countVmTasks(provider.site)).toEqual({ created: 27, destroyed: 27 });
});

async function waitForPending(workload: RunningWorkload): Promise<void> {
  await waitUntil('the scheduler has tried all pods', async () =>
    (await workload.pods()).every(({ status }) =>
      status.conditions?.some(({ reason }) => reason === 'Unschedulable'),
    ),
  );
}

function sumByKind(decisions: readonly { readonly what: string; readonly count: number }[]) {
  const total: Record<string, number> = {};
  for (const { what, count } of decisions) total[what] = (total[what] ?? 0) + count;
  return total;
}

function parseVmId({ providerID = '' }: NodeObject['spec']): number {
  return Number(providerID.split('/').at(-1));
}

/** `2`, `2000m` and `1024Ki` in one unit. */
function parseAmount(text = ''): number {
  const [, number, unit = ''] = /^(\d+)(m|Ki)?$/.exec(text) ?? [];
  return Number(number) * ({ m: 0.001, Ki: 1024 }[unit] ?? 1);
}
