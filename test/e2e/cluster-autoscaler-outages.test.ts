// SPDX-License-Identifier: Apache-2.0
// The Cluster Autoscaler while its provider is killed during a scale-up, or Proxmox is unavailable for two minutes: all
// protocol generations at the same time, each with its own pool.
import { performance } from 'node:perf_hooks';
import { describe, it, type TestContext } from 'vitest';
import { type ControlPlane, startControlPlane } from './controlplane/index.ts';
import { type ProviderSite, startProvider } from './support/autoscaler/provider-site.ts';
import type { ScriptedAutoscaler } from './support/autoscaler/scripted-autoscaler.ts';
import { type RunningWorkload, startPods } from './support/autoscaler/workload.ts';
import { listNodes, readReadiness } from './support/kube-objects.ts';
import { applyManifests } from './support/manifests.ts';
import {
  countVmTasks,
  listLeftovers,
  type SimulatedSite,
  waitUntilReady,
} from './support/simulated-site.ts';

/** The lease has to expire, and the successor waits for requests that may still be in flight. */
const TAKEOVER_MS = 180_000;
const OUTAGE_MS = 120_000;
/** Late enough that capacity has not been offered for a while, so no creation is refused. */
const LATE_IN_OUTAGE_MS = 70_000;

const GENERATIONS = ['a0', 'a', 'b', 'c'] as const;
type Generation = (typeof GENERATIONS)[number];

const POOLS = GENERATIONS.map(
  (one) => `
  - name: gen-${one}
    from: { image: noble }
    size: { cpu: 2, memory: 2Gi, disk: 20Gi }
    limits: { min: 0, max: 10 }`,
).join('');

interface AutoscalerUnderTest {
  readonly generation: Generation;
  readonly autoscaler: ScriptedAutoscaler;
  /** Starts pods that need a node each. */
  startPods(name: string, count: number): Promise<RunningWorkload>;
}

interface OutageScenario {
  readonly plane: ControlPlane;
  readonly provider: ProviderSite;
  readonly autoscalers: readonly AutoscalerUnderTest[];
}

async function startScenario({ onTestFinished }: TestContext): Promise<OutageScenario> {
  const plane = await startControlPlane();
  onTestFinished(() => plane.stop());
  await applyManifests(plane);
  const provider = await startProvider({
    plane,
    onTestFinished,
    pools: POOLS,
    hasFaultProxies: true,
  });
  onTestFinished(() => provider.close());
  const autoscalers = GENERATIONS.map((generation) => {
    const group = `gen-${generation}`;
    return {
      generation,
      autoscaler: provider.autoscaler(generation, [group], { scanMs: 1_000 }),
      startPods: (name: string, count: number) =>
        startPods(plane.api, {
          name: `${group}-${name}`,
          count,
          nodeSelector: { 'autoscaler.proxmox/group': group },
        }),
    };
  });
  return { plane, provider, autoscalers };
}

/** Runs all autoscalers until the check holds for each. */
async function runAllUntil(
  autoscalers: readonly AutoscalerUnderTest[],
  check: (one: AutoscalerUnderTest) => boolean | Promise<boolean>,
  limitMs?: number,
): Promise<void> {
  await Promise.all(autoscalers.map((one) => one.autoscaler.runUntil(() => check(one), limitMs)));
}

function areAllRunning(workloads: ReadonlyMap<AutoscalerUnderTest, readonly RunningWorkload[]>) {
  return async (one: AutoscalerUnderTest) => {
    for (const workload of workloads.get(one) ?? []) {
      if (!(await workload.running())) return false;
    }
    return true;
  };
}

async function scaleToZero(
  { plane, provider, autoscalers }: OutageScenario,
  all: readonly RunningWorkload[],
) {
  for (const workload of all) await workload.remove();
  await runAllUntil(autoscalers, async () => (await listNodes(plane.api)).length === 0);
  return listLeftovers(provider.site);
}

const OUTAGES: Readonly<Record<string, (site: SimulatedSite) => Promise<() => Promise<void>>>> = {
  'refuses every connection': async ({ proxies }) => {
    const restores = await Promise.all(proxies.map((proxy) => proxy.refuse()));
    return async () => void (await Promise.all(restores.map((restore) => restore())));
  },
  'accepts every connection and does not answer': async ({ proxies }) => {
    const restores = proxies.map((proxy) => proxy.hang());
    return async () => restores.forEach((restore) => restore());
  },
  'answers 595, 596 and 500': async ({ sim }) => {
    const restores = [595, 596, 500].map((status, index) =>
      sim.faults.add({
        kind: 'error',
        status,
        message: status === 500 ? 'got timeout' : 'No route to host',
        times: 1_000_000,
        // Each status gets a third of the requests.
        probability: 1 / (3 - index),
      }),
    );
    return async () => restores.forEach((restore) => restore());
  },
};

// The tests run concurrently, each with its own control plane: they mostly wait.
describe.concurrent('the Cluster Autoscaler of every protocol generation', () => {
  it(
    'gets the requested number of machines when the server is killed during a scale-up',
    async (context) => {
      const { expect } = context;
      const scenario = await startScenario(context);
      const { provider, autoscalers } = scenario;
      const { site, replica } = provider;
      const workloads = new Map<AutoscalerUnderTest, readonly RunningWorkload[]>();
      for (const one of autoscalers) workloads.set(one, [await one.startPods('app', 3)]);
      let isRestarted = false;
      const killDuringScaleUp = async () => {
        await site.waitForCreations(4);
        await replica.program.restart();
        isRestarted = true;
      };
      await Promise.all([killDuringScaleUp(), runAllUntil(autoscalers, () => isRestarted)]);
      await runAllUntil(autoscalers, areAllRunning(workloads), TAKEOVER_MS);
      await waitUntilReady(replica);
      expect(site.sim.inspect().vms).toHaveLength(12);
      expect(countVmTasks(site)).toEqual({ created: 12, destroyed: 0 });
      for (const { autoscaler, generation } of autoscalers) {
        expect(await autoscaler.readTarget(`gen-${generation}`)).toBe(3);
        expect(autoscaler.decisions).toMatchObject([{ what: 'grow', count: 3 }]);
        expect(autoscaler.failedLoops).toBeGreaterThan(0);
      }
      const left = await scaleToZero(scenario, [...workloads.values()].flat());
      expect(left).toEqual({ vms: [], isos: [] });
      expect(countVmTasks(site)).toEqual({ created: 12, destroyed: 12 });
    },
    4 * TAKEOVER_MS,
  );

  it.for(Object.entries(OUTAGES))(
    'loses no node and reaches its size when Proxmox %s for two minutes',
    { timeout: OUTAGE_MS + 4 * TAKEOVER_MS },
    async ([, begin], context) => {
      const { expect } = context;
      const scenario = await startScenario(context);
      const { plane, provider, autoscalers } = scenario;
      const { site } = provider;
      const workloads = new Map<AutoscalerUnderTest, RunningWorkload[]>();
      for (const one of autoscalers) workloads.set(one, [await one.startPods('base', 1)]);
      await runAllUntil(autoscalers, areAllRunning(workloads));
      const before = (await listNodes(plane.api)).map(({ metadata }) => metadata.uid).sort();
      // Half of the pools scale up when the outage begins; the others during the outage.
      const [growing, idle] = [autoscalers.slice(0, 2), autoscalers.slice(2)];
      for (const one of growing) workloads.get(one)?.push(await one.startPods('early', 2));
      let restore: (() => Promise<void>) | undefined;
      const breakDuringScaleUp = async () => {
        await site.waitForCreations(autoscalers.length + 2);
        restore = await begin(site);
      };
      await Promise.all([
        breakDuringScaleUp(),
        runAllUntil(autoscalers, () => restore !== undefined),
      ]);
      const since = performance.now();
      const hasLasted = (ms: number) => () => performance.now() - since > ms;
      await runAllUntil(autoscalers, hasLasted(LATE_IN_OUTAGE_MS));
      for (const one of idle) workloads.get(one)?.push(await one.startPods('late', 2));
      await runAllUntil(autoscalers, hasLasted(OUTAGE_MS), OUTAGE_MS);
      const during = await listNodes(plane.api);
      expect(during.map(({ metadata }) => metadata.uid)).toEqual(expect.arrayContaining(before));
      expect(new Set(during.map(readReadiness))).toEqual(new Set(['True']));
      for (const { autoscaler } of autoscalers) {
        expect(autoscaler.failedLoops).toBe(0);
        expect(autoscaler.loggedErrors).toEqual([]);
      }
      await restore?.();
      await runAllUntil(autoscalers, areAllRunning(workloads), TAKEOVER_MS);
      expect(site.sim.inspect().vms).toHaveLength(12);
      expect(countVmTasks(site)).toEqual({ created: 12, destroyed: 0 });
      for (const { autoscaler } of autoscalers) {
        const kinds = new Set(autoscaler.decisions.map(({ what }) => what));
        expect(kinds).toEqual(new Set(['grow']));
      }
      const left = await scaleToZero(scenario, [...workloads.values()].flat());
      expect(left).toEqual({ vms: [], isos: [] });
    },
  );
});
