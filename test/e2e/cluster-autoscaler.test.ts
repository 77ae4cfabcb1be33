// SPDX-License-Identifier: Apache-2.0
// The built `serve` behind a scripted Cluster Autoscaler of each wire generation, on a real control plane: pods that
// really wait, machines that really join, and what goes wrong on the way.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { type ProviderSite, startProvider } from './support/autoscaler/provider-site.ts';
import { templateOf } from './support/autoscaler/template-node.ts';
import { type RunningWorkload, start, startReplicas } from './support/autoscaler/workload.ts';
import { type NodeObject, nodes } from './support/kube-objects.ts';
import { applyManifests } from './support/manifests.ts';
import { judgeTasks, remains } from './support/simulated-site.ts';

const GENERATIONS = ['a0', 'a', 'b', 'c'] as const;
const UNMANAGED = 'control-plane-1';
const GROUP_LABEL = 'autoscaler.proxmox/group';

/** Each with hosts of its own where it matters, so that what happens to one does not happen to another. */
const POOLS = [
  ...GENERATIONS.map((one) => pool(`gen-${one}`, { hosts: ['pve1', 'pve2', 'pve3'] })),
  pool('tight', { hosts: ['pve4'], memory: '20Gi', lot: 'wide' }),
  pool('overflow', { hosts: ['pve1', 'pve2', 'pve3'], lot: 'wide' }),
  ...GENERATIONS.flatMap((one) => [
    pool(`vanishing-${one}`, { hosts: ['pve5'], lot: `sure-${one}` }),
    pool(`spare-${one}`, { hosts: ['pve1', 'pve2', 'pve3'], lot: `sure-${one}` }),
  ]),
  ...GENERATIONS.map((one) => pool(`silent-${one}`, { hosts: ['pve1', 'pve2', 'pve3'] })),
  pool('drained', { hosts: ['pve1', 'pve2', 'pve3'] }),
].join('');

function pool(
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
  // Of no group, without a provider id, and silent: nobody's business here.
  await plane.api.create('/api/v1/nodes', { metadata: { name: UNMANAGED } });
  provider = await startProvider({
    plane,
    hosts: 5,
    guests: [{ match: 'silent-*', behaviour: 'hangs' }],
    pools: POOLS,
    onTestFinished: () => undefined,
  });
  provider.site.sim.faults.add({
    kind: 'task-fails',
    taskType: 'qmcreate',
    host: 'pve5',
    // In the middle of its work, so that it cleans up behind itself.
    delayMs: 100,
    message: 'lvcreate error: No space left on device',
    times: GENERATIONS.length,
  });
});
afterAll(async () => {
  await provider?.close();
  await plane?.stop();
});

async function nodesOf(group: string): Promise<readonly NodeObject[]> {
  return (await nodes(plane.api)).filter(
    ({ metadata }) => metadata.labels?.[GROUP_LABEL] === group,
  );
}

function vmsOf(group: string): readonly number[] {
  return provider.site.sim
    .inspect()
    .vms.filter(({ config }) => config['name']?.startsWith(`${group}-`) === true)
    .map(({ id }) => id);
}

async function isEmpty(group: string): Promise<boolean> {
  return vmsOf(group).length === 0 && (await nodesOf(group)).length === 0;
}

async function placesOf(workload: RunningWorkload): Promise<readonly (string | undefined)[]> {
  const there = new Map((await nodes(plane.api)).map((node) => [node.metadata.name, node]));
  return (await workload.pods())
    .map(({ spec }) => there.get(spec.nodeName ?? '')?.metadata.labels?.[GROUP_LABEL])
    .sort();
}

describe.concurrent('the Cluster Autoscaler', () => {
  it.for(GENERATIONS)(
    'of generation %s: from zero, and to zero',
    async (generation, { expect }) => {
      const group = `gen-${generation}`;
      const autoscaler = provider.autoscaler(generation, [group]);
      const caller = { client: provider.client(generation), generation };
      await autoscaler.startUp();
      const promised = (await templateOf(caller, group)).allocatable;
      const nodeSelector = { [GROUP_LABEL]: group };
      const workload = await start(plane.api, { name: group, count: 3, nodeSelector });
      await autoscaler.until(() => workload.running());
      expect(vmsOf(group)).toHaveLength(3);
      const joined = await nodesOf(group);
      expect(joined.map(({ spec }) => spec.providerID).sort()).toEqual(
        vmsOf(group)
          .map((id) => `proxmox://lab/${id}`)
          .sort(),
      );
      const real = joined[0]?.status.allocatable ?? {};
      expect(amount(real['memory'])).not.toBe(amount(promised['memory']));
      await waitUntil('the template says what the nodes offer', async () => {
        const { allocatable } = await templateOf(caller, group);
        return ['cpu', 'memory', 'ephemeral-storage', 'pods'].every(
          (name) => amount(allocatable[name]) === amount(real[name]),
        );
      });
      await workload.remove();
      await autoscaler.until(async () => (await workload.gone()) && (await isEmpty(group)));
      expect(await autoscaler.target(group)).toBe(0);
      await autoscaler.until(async () => (await autoscaler.loop())[0]?.instances.length === 0);
      const [last] = await autoscaler.loop();
      expect(last).toMatchObject({ target: 0, instances: [], registered: [] });
      expect(sums(autoscaler.decisions)).toEqual({ grow: 3, shrink: 3 });
      await caller.client.call('Cleanup');
    },
  );

  it('goes to the next pool in the next loop when the host is full', async ({ expect }) => {
    const autoscaler = provider.autoscaler('a', ['tight', 'overflow']);
    const workload = await start(plane.api, {
      name: 'wide',
      count: 5,
      nodeSelector: { lot: 'wide' },
    });
    await waitForPending(workload);
    await autoscaler.until(() => workload.running());
    const grown = autoscaler.decisions.filter(({ what }) => what === 'grow');
    expect(grown).toMatchObject([
      { group: 'tight', count: 3 },
      { group: 'overflow', count: 2 },
    ]);
    expect((grown[1]?.loop ?? 0) - (grown[0]?.loop ?? 0)).toBe(1);
    expect(await placesOf(workload)).toEqual(['overflow', 'overflow', 'tight', 'tight', 'tight']);
    await workload.remove();
    await autoscaler.until(async () => (await isEmpty('tight')) && (await isEmpty('overflow')));
    expect(sums(autoscaler.decisions)).toEqual({ grow: 5, shrink: 5 });
  });

  it.for(GENERATIONS)(
    'of generation %s is told when room vanished after the call, backs off, and goes elsewhere',
    async (generation, { expect }) => {
      const [vanishing, spare] = [`vanishing-${generation}`, `spare-${generation}`];
      const autoscaler = provider.autoscaler(generation, [vanishing, spare]);
      const name = `sure-${generation}`;
      const workload = await start(plane.api, { name, count: 1, nodeSelector: { lot: name } });
      await autoscaler.until(() => workload.running());
      expect(autoscaler.decisions).toMatchObject([
        { what: 'grow', group: vanishing, count: 1, targets: [0, 1] },
        {
          what: 'delete-failed',
          group: vanishing,
          count: 1,
          // Counted until it is taken note of: a target that is reached is a success.
          targets: [1, 0],
          errors: [{ errorCode: 'NO_STORAGE_SPACE', instanceErrorClass: 1 }],
        },
        { what: 'grow', group: spare, count: 1, targets: [0, 1] },
      ]);
      expect(autoscaler.isBackedOff(vanishing)).toBe(true);
      expect(vmsOf(vanishing)).toEqual([]);
      expect(await placesOf(workload)).toEqual([spare]);
      await workload.remove();
      await autoscaler.until(() => isEmpty(spare));
    },
  );

  it.for(GENERATIONS)(
    'of generation %s gets rid of a machine that never joins, and its target falls once',
    async (generation, { expect }) => {
      const group = `silent-${generation}`;
      const autoscaler = provider.autoscaler(generation, [group], { provisionMs: 8_000 });
      const nodeSelector = { lot: group };
      const workload = await start(plane.api, { name: group, count: 1, nodeSelector });
      await autoscaler.until(() => vmsOf(group).length === 1);
      const undo = generation === 'c' ? [{ what: 'undo', count: 1, targets: [1, 1] }] : [];
      const expected = [
        { what: 'grow', count: 1, targets: [0, 1] },
        // The VM is there: nothing is called off.
        ...undo,
        { what: 'delete-unregistered', count: 1, targets: [1, 0] },
      ];
      await autoscaler.until(() => autoscaler.decisions.length === expected.length);
      await autoscaler.until(() => isEmpty(group));
      await autoscaler.until(async () => (await autoscaler.loop())[0]?.instances.length === 0);
      expect(autoscaler.decisions).toMatchObject(expected);
      expect(autoscaler.isBackedOff(group)).toBe(true);
      expect(await autoscaler.target(group)).toBe(0);
      await workload.remove();
    },
  );

  it('empties a node before its machine goes, and its Node goes after that', async ({ expect }) => {
    const autoscaler = provider.autoscaler('c', ['drained']);
    const nodeSelector = { [GROUP_LABEL]: 'drained' };
    const large = await start(plane.api, { name: 'drained', count: 2, nodeSelector });
    await autoscaler.until(() => large.running());
    const small = await startReplicas(plane.api, { name: 'small', count: 2, nodeSelector });
    await autoscaler.until(() => small.running());
    const before = await nodesOf('drained');
    const vms = new Map(before.map(({ metadata, spec }) => [metadata.name, vmIdOf(spec)]));
    expect(new Set((await small.pods()).map(({ spec }) => spec.nodeName)).size).toBe(2);
    await large.remove();
    const isOneLeft = async () => {
      // A Node that was seen missing before its VM was seen there went too early.
      const there = new Set((await nodesOf('drained')).map(({ metadata }) => metadata.name));
      for (const [name, id] of vms) {
        if (!there.has(name)) expect(vmsOf('drained')).not.toContain(id);
      }
      return there.size === 1 && (await small.running());
    };
    await autoscaler.until(isOneLeft);
    const [removal] = autoscaler.removals;
    expect(autoscaler.removals).toHaveLength(1);
    expect(removal?.evicted).toBe(1);
    const gone = vms.get(removal?.node ?? '');
    const ends = provider.site.deeds.filter(
      ({ call }) => call.includes(`/qemu/${gone}/status/`) && !call.endsWith('/start'),
    );
    expect(ends.length).toBeGreaterThan(0);
    for (const { at } of ends) expect(at).toBeGreaterThan(removal?.askedAt ?? Infinity);
    // What is left of them has one place, and stays.
    expect(await placesOf(small)).toEqual(['drained', 'drained']);
    expect(sums(autoscaler.decisions)).toEqual({ grow: 2, shrink: 1 });
    await small.remove();
    await autoscaler.until(() => isEmpty('drained'));
  });
});

it('nothing is left of any of it, in Proxmox or Kubernetes', async () => {
  const names = async () => (await nodes(plane.api)).map(({ metadata }) => metadata.name);
  await waitUntil('no Node of ours is left', async () => (await names()).length <= 1);
  expect(await names()).toEqual([UNMANAGED]);
  expect(remains(provider.site)).toEqual({ vms: [], isos: [] });
  // 4 × 3, 3 + 2, 4 in the spare pools, 4 that never joined, and 2 that were drained or emptied.
  expect(judgeTasks(provider.site)).toEqual({ created: 27, destroyed: 27 });
});

async function waitForPending(workload: RunningWorkload): Promise<void> {
  await waitUntil('the scheduler has tried all', async () =>
    (await workload.pods()).every(({ status }) =>
      status.conditions?.some(({ reason }) => reason === 'Unschedulable'),
    ),
  );
}

function sums(decisions: readonly { readonly what: string; readonly count: number }[]) {
  const total: Record<string, number> = {};
  for (const { what, count } of decisions) total[what] = (total[what] ?? 0) + count;
  return total;
}

function vmIdOf({ providerID = '' }: NodeObject['spec']): number {
  return Number(providerID.split('/').at(-1));
}

/** `2`, `2000m` and `1024Ki` in one unit. */
function amount(text = ''): number {
  const [, number, unit = ''] = /^(\d+)(m|Ki)?$/.exec(text) ?? [];
  return Number(number) * ({ m: 0.001, Ki: 1024 }[unit] ?? 1);
}
