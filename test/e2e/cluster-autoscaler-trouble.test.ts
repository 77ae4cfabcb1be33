// SPDX-License-Identifier: Apache-2.0
// What the Cluster Autoscaler sees while its provider dies in the middle, or Proxmox is away for two minutes: every
// generation of it at once, each with a pool of its own.
import { performance } from 'node:perf_hooks';
import { describe, it, type TestContext } from 'vitest';
import { type ControlPlane, startControlPlane } from './controlplane/index.ts';
import { type ProviderSite, startProvider } from './support/autoscaler/provider-site.ts';
import type { ScriptedAutoscaler } from './support/autoscaler/scripted-autoscaler.ts';
import { type RunningWorkload, start } from './support/autoscaler/workload.ts';
import { nodes, readiness } from './support/kube-objects.ts';
import { applyManifests } from './support/manifests.ts';
import { judgeTasks, ready, remains, type SimulatedSite } from './support/simulated-site.ts';

/** The lease has to run out, and the successor waits for requests that were on their way. */
const TAKEOVER_MS = 180_000;
const OUTAGE_MS = 120_000;
/** After it, room has not been offered for long, and nothing was ordered that would have been refused. */
const LATE_IN_THE_OUTAGE_MS = 70_000;

const GENERATIONS = ['a0', 'a', 'b', 'c'] as const;
type Generation = (typeof GENERATIONS)[number];

const POOLS = GENERATIONS.map(
  (one) => `
  - name: gen-${one}
    from: { image: noble }
    size: { cpu: 2, memory: 2Gi, disk: 20Gi }
    limits: { min: 0, max: 10 }`,
).join('');

interface Party {
  readonly generation: Generation;
  readonly autoscaler: ScriptedAutoscaler;
  /** Pods that take a node each. */
  ask(name: string, count: number): Promise<RunningWorkload>;
}

interface Scene {
  readonly plane: ControlPlane;
  readonly provider: ProviderSite;
  readonly parties: readonly Party[];
}

async function aScene({ onTestFinished }: TestContext): Promise<Scene> {
  const plane = await startControlPlane();
  onTestFinished(() => plane.stop());
  await applyManifests(plane);
  const provider = await startProvider({ plane, onTestFinished, pools: POOLS, severable: true });
  onTestFinished(() => provider.close());
  const parties = GENERATIONS.map((generation) => {
    const group = `gen-${generation}`;
    return {
      generation,
      autoscaler: provider.autoscaler(generation, [group], { scanMs: 1_000 }),
      ask: (name: string, count: number) =>
        start(plane.api, {
          name: `${group}-${name}`,
          count,
          nodeSelector: { 'autoscaler.proxmox/group': group },
        }),
    };
  });
  return { plane, provider, parties };
}

/** All of them go on until each has what it works for. */
async function together(
  parties: readonly Party[],
  look: (party: Party) => boolean | Promise<boolean>,
  limitMs?: number,
): Promise<void> {
  await Promise.all(parties.map((party) => party.autoscaler.until(() => look(party), limitMs)));
}

function running(workloads: ReadonlyMap<Party, readonly RunningWorkload[]>) {
  return async (party: Party) => {
    for (const one of workloads.get(party) ?? []) if (!(await one.running())) return false;
    return true;
  };
}

async function toZero({ plane, provider, parties }: Scene, all: readonly RunningWorkload[]) {
  for (const workload of all) await workload.remove();
  await together(parties, async () => (await nodes(plane.api)).length === 0);
  return remains(provider.site);
}

const OUTAGES: Readonly<Record<string, (site: SimulatedSite) => Promise<() => Promise<void>>>> = {
  'refuses every connection': async ({ wires }) => {
    const healers = await Promise.all(wires.map((wire) => wire.refuse()));
    return async () => void (await Promise.all(healers.map((heal) => heal())));
  },
  'takes every connection and says nothing': async ({ wires }) => {
    const healers = wires.map((wire) => wire.hang());
    return async () => healers.forEach((heal) => heal());
  },
  'answers 595, 596 and 500': async ({ sim }) => {
    const healers = [595, 596, 500].map((status, index) =>
      sim.faults.add({
        kind: 'error',
        status,
        message: status === 500 ? 'got timeout' : 'No route to host',
        times: 1_000_000,
        // Each gets its share.
        probability: 1 / (3 - index),
      }),
    );
    return async () => healers.forEach((heal) => heal());
  },
};

// Side by side, each with a cluster of its own: nearly all of their time they wait.
describe.concurrent('the Cluster Autoscaler of every generation', () => {
  it(
    'has the right number of machines when the server was killed in mid scale-up',
    async (context) => {
      const { expect } = context;
      const scene = await aScene(context);
      const { provider, parties } = scene;
      const { site, replica } = provider;
      const workloads = new Map<Party, readonly RunningWorkload[]>();
      for (const party of parties) workloads.set(party, [await party.ask('app', 3)]);
      let isBackAgain = false;
      const killing = async () => {
        await site.untilCreations(4);
        await replica.program.restart();
        isBackAgain = true;
      };
      await Promise.all([killing(), together(parties, () => isBackAgain)]);
      await together(parties, running(workloads), TAKEOVER_MS);
      await ready(replica);
      expect(site.sim.inspect().vms).toHaveLength(12);
      expect(judgeTasks(site)).toEqual({ created: 12, destroyed: 0 });
      for (const { autoscaler, generation } of parties) {
        expect(await autoscaler.target(`gen-${generation}`)).toBe(3);
        expect(autoscaler.decisions).toMatchObject([{ what: 'grow', count: 3 }]);
        expect(autoscaler.failedLoops).toBeGreaterThan(0);
      }
      const left = await toZero(scene, [...workloads.values()].flat());
      expect(left).toEqual({ vms: [], isos: [] });
      expect(judgeTasks(site)).toEqual({ created: 12, destroyed: 12 });
    },
    2 * TAKEOVER_MS,
  );

  it.for(Object.entries(OUTAGES))(
    'loses nothing and has what it needs when Proxmox %s for two minutes',
    { timeout: OUTAGE_MS + TAKEOVER_MS },
    async ([, begin], context) => {
      const { expect } = context;
      const scene = await aScene(context);
      const { plane, provider, parties } = scene;
      const { site } = provider;
      const workloads = new Map<Party, RunningWorkload[]>();
      for (const party of parties) workloads.set(party, [await party.ask('base', 1)]);
      await together(parties, running(workloads));
      const before = (await nodes(plane.api)).map(({ metadata }) => metadata.uid).sort();
      // Half of them are growing when it begins; the others want to while it lasts.
      const [growing, idle] = [parties.slice(0, 2), parties.slice(2)];
      for (const party of growing) workloads.get(party)?.push(await party.ask('early', 2));
      let heal: (() => Promise<void>) | undefined;
      const breaking = async () => {
        await site.untilCreations(parties.length + 2);
        heal = await begin(site);
      };
      await Promise.all([breaking(), together(parties, () => heal !== undefined)]);
      const since = performance.now();
      const lasts = (ms: number) => () => performance.now() - since > ms;
      await together(parties, lasts(LATE_IN_THE_OUTAGE_MS));
      for (const party of idle) workloads.get(party)?.push(await party.ask('late', 2));
      await together(parties, lasts(OUTAGE_MS), OUTAGE_MS);
      const during = await nodes(plane.api);
      expect(during.map(({ metadata }) => metadata.uid)).toEqual(expect.arrayContaining(before));
      expect(new Set(during.map(readiness))).toEqual(new Set(['True']));
      for (const { autoscaler } of parties) {
        expect(autoscaler.failedLoops).toBe(0);
        expect(autoscaler.troubles).toEqual([]);
      }
      await heal?.();
      await together(parties, running(workloads), TAKEOVER_MS);
      expect(site.sim.inspect().vms).toHaveLength(12);
      expect(judgeTasks(site)).toEqual({ created: 12, destroyed: 0 });
      for (const { autoscaler } of parties) {
        const kinds = new Set(autoscaler.decisions.map(({ what }) => what));
        expect(kinds).toEqual(new Set(['grow']));
      }
      const left = await toZero(scene, [...workloads.values()].flat());
      expect(left).toEqual({ vms: [], isos: [] });
    },
  );
});
