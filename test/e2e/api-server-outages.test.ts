// SPDX-License-Identifier: Apache-2.0
// The connection between pvescaler and the API server fails while a pool scales up and down: no VM is created twice and
// nothing is left behind.
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { systemClock } from '../../src/system/index.ts';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { type FaultProxy, startFaultProxy } from './support/fault-proxy.ts';
import { listNodes, readReadiness } from './support/kube-objects.ts';
import { accountKubeconfig, applyManifests } from './support/manifests.ts';
import {
  countVmTasks,
  listLeftovers,
  POOL,
  type Replica,
  type SimulatedSite,
  startSite,
  waitUntilReady,
} from './support/simulated-site.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
  await applyManifests(plane);
});
afterAll(() => plane.stop());

interface OutageScenario {
  readonly site: SimulatedSite;
  readonly replica: Replica;
  /** Between pvescaler and the API server. */
  readonly proxy: FaultProxy;
}

async function startScenario(): Promise<OutageScenario> {
  const proxy = await startFaultProxy(plane.server);
  const kubeconfig = await accountKubeconfig(plane, proxy.url);
  const site = await startSite({ plane, distribution: 'k3s', kubeconfig });
  onTestFinished(async () => {
    await site.close();
    await proxy.close();
  });
  const replica = await site.serve('serve');
  await waitUntilReady(replica);
  return { site, replica, proxy };
}

async function areReady(count: number): Promise<boolean> {
  const nodes = await listNodes(plane.api);
  return nodes.length === count && nodes.every((node) => readReadiness(node) === 'True');
}

async function scaleTo({ site }: OutageScenario, to: number): Promise<void> {
  const ran = await site.runCli('pool', 'scale', POOL, '--to', String(to));
  expect(ran).toMatchObject({ exitCode: 0 });
  // A node may have been unknown for a moment while the API server was down.
  await waitUntil(`${to} ready nodes`, () => areReady(to));
}

async function scaleToZero(scenario: OutageScenario, createdCount: number): Promise<void> {
  await scaleTo(scenario, 0);
  expect(listLeftovers(scenario.site)).toEqual({ vms: [], isos: [] });
  expect(countVmTasks(scenario.site)).toEqual({ created: createdCount, destroyed: createdCount });
}

it('a pool scales while the API server is killed and restarted', async () => {
  const scenario = await startScenario();
  const growing = scaleTo(scenario, 6);
  await waitUntil('the first node', async () => (await listNodes(plane.api)).length > 0);
  await plane.killApiServer();
  await waitUntil('guests that cannot join yet', () => scenario.site.sim.inspect().vms.length > 0);
  await plane.startApiServer();
  await growing;
  const shrinking = scaleToZero(scenario, 6);
  await waitUntil('the first deletion', () => scenario.site.sim.inspect().vms.length < 6);
  await plane.killApiServer();
  await plane.startApiServer();
  await shrinking;
});

it('a pool scales while every connection is cut repeatedly', async () => {
  const scenario = await startScenario();
  const random = new SeededRandom(4);
  const over = new AbortController();
  let cuts = 0;
  const cutting = (async () => {
    while (!over.signal.aborted) {
      await systemClock.sleep(300 + random.integer(2_000));
      cuts += scenario.proxy.cut();
    }
  })();
  try {
    await scaleTo(scenario, 6);
    await scaleToZero(scenario, 6);
  } finally {
    over.abort();
    await cutting;
  }
  expect(cuts).toBeGreaterThan(10);
});

it('the watch lists again when the API server has compacted its history', async () => {
  const scenario = await startScenario();
  await scaleTo(scenario, 2);
  const [gone] = await listNodes(plane.api);
  scenario.proxy.block();
  // The watch is blocked, so only a new list shows this change.
  await plane.api.patch(`/api/v1/nodes/${gone?.metadata.name}`, {
    metadata: { annotations: { 'example.org/changed': 'while the watch was blocked' } },
  });
  await plane.compact();
  await plane.killApiServer();
  await plane.startApiServer();
  scenario.proxy.unblock();
  await scaleTo(scenario, 3);
  const metrics = await (await fetch(`${scenario.replica.health}/metrics`)).text();
  expect(metrics).toMatch(
    /^pvescaler_kubernetes_watch_restarts_total\{.*reason="expired".*\} [1-9]/m,
  );
  await scaleToZero(scenario, 3);
});
