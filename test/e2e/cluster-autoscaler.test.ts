// SPDX-License-Identifier: Apache-2.0
// The built `serve` behind a scripted Cluster Autoscaler of each wire generation, on a real control plane: pods that
// really wait, machines that really join, and what goes wrong on the way.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { templateOf } from './support/autoscaler/group-look.ts';
import { type ProviderSite, startProvider } from './support/autoscaler/provider-site.ts';
import { type RunningWorkload, start } from './support/autoscaler/workload.ts';
import { type NodeObject, nodes } from './support/kube-objects.ts';
import { applyManifests } from './support/manifests.ts';
import { judgeTasks, remains } from './support/simulated-site.ts';

const GENERATIONS = ['a0', 'a', 'b', 'c'] as const;
const GROUP_LABEL = 'autoscaler.proxmox/group';

/** Each with hosts of its own where it matters, so that what happens to one does not happen to another. */
const POOLS = [
  ...GENERATIONS.map((one) => pool(`gen-${one}`, { hosts: ['pve1', 'pve2', 'pve3'] })),
  pool('tight', { hosts: ['pve4'], memory: '20Gi', lot: 'wide' }),
  pool('overflow', { hosts: ['pve1', 'pve2', 'pve3'], lot: 'wide' }),
  pool('vanishing', { hosts: ['pve5'], lot: 'sure' }),
  pool('spare', { hosts: ['pve1', 'pve2', 'pve3'], lot: 'sure' }),
  pool('silent', { hosts: ['pve1', 'pve2', 'pve3'] }),
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
  provider = await startProvider({
    plane,
    hosts: 5,
    guests: [{ match: 'silent-*', behaviour: 'hangs' }],
    pools: POOLS,
    onTestFinished: () => undefined,
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
      const [last] = await autoscaler.loop();
      expect(last).toMatchObject({ target: 0, instances: [], nodes: [] });
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

  it('is told when room vanished after the call, and goes elsewhere', async ({ expect }) => {
    const autoscaler = provider.autoscaler('b', ['vanishing', 'spare']);
    provider.site.sim.faults.add({
      kind: 'task-fails',
      taskType: 'qmcreate',
      host: 'pve5',
      // In the middle of its work, so that it cleans up behind itself.
      delayMs: 100,
      message: 'lvcreate error: No space left on device',
    });
    const workload = await start(plane.api, {
      name: 'sure',
      count: 1,
      nodeSelector: { lot: 'sure' },
    });
    await autoscaler.until(() => workload.running());
    expect(autoscaler.decisions).toMatchObject([
      { what: 'grow', group: 'vanishing', count: 1, targets: [0, 1] },
      {
        what: 'delete-failed',
        group: 'vanishing',
        count: 1,
        // Counted until it is taken note of.
        targets: [1, 0],
        errors: [{ errorCode: 'NO_STORAGE_SPACE', instanceErrorClass: 1 }],
      },
      { what: 'grow', group: 'spare', count: 1, targets: [0, 1] },
    ]);
    expect(vmsOf('vanishing')).toEqual([]);
    expect(await placesOf(workload)).toEqual(['spare']);
    await workload.remove();
    await autoscaler.until(() => isEmpty('spare'));
  });

  it('gets rid of a machine that never joins, and its target falls once', async ({ expect }) => {
    const autoscaler = provider.autoscaler('c', ['silent'], 8_000);
    const workload = await start(plane.api, {
      name: 'silent',
      count: 1,
      nodeSelector: { lot: 'silent' },
    });
    await autoscaler.until(() => vmsOf('silent').length === 1);
    await autoscaler.until(() => autoscaler.decisions.length === 3);
    expect(autoscaler.decisions).toMatchObject([
      { what: 'grow', count: 1, targets: [0, 1] },
      // The VM is there: nothing is called off.
      { what: 'undo', count: 1, targets: [1, 1] },
      { what: 'delete-unregistered', count: 1, targets: [1, 0] },
    ]);
    await autoscaler.until(() => isEmpty('silent'));
    await autoscaler.until(async () => (await autoscaler.loop())[0]?.instances.length === 0);
    expect(await autoscaler.target('silent')).toBe(0);
    expect(autoscaler.decisions).toHaveLength(3);
    await workload.remove();
  });
});

it('nothing is left of any of it, in Proxmox or Kubernetes', async () => {
  await waitUntil('no Node is left', async () => (await nodes(plane.api)).length === 0);
  expect(remains(provider.site)).toEqual({ vms: [], isos: [] });
  // 4 × 3, 3 + 2, the one in the spare pool, and the one that never joined.
  expect(judgeTasks(provider.site)).toEqual({ created: 19, destroyed: 19 });
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

/** `2`, `2000m` and `1024Ki` in one unit. */
function amount(text = ''): number {
  const [, number, unit = ''] = /^(\d+)(m|Ki)?$/.exec(text) ?? [];
  return Number(number) * ({ m: 0.001, Ki: 1024 }[unit] ?? 1);
}
