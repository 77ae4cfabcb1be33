// SPDX-License-Identifier: Apache-2.0
// The way between pvescaler and its cluster is disturbed while a pool grows and shrinks: nothing is made twice, nothing
// is left.
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { systemClock } from '../../src/system/index.ts';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { type CuttingProxy, startProxy } from './support/cutting-proxy.ts';
import { nodes, readiness } from './support/kube-objects.ts';
import { accountKubeconfig, applyManifests } from './support/manifests.ts';
import {
  judgeTasks,
  POOL,
  type Replica,
  ready,
  remains,
  type SimulatedSite,
  startSite,
} from './support/simulated-site.ts';

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
  await applyManifests(plane);
});
afterAll(() => plane.stop());

interface Scene {
  readonly site: SimulatedSite;
  readonly replica: Replica;
  /** Between pvescaler and the API server. */
  readonly proxy: CuttingProxy;
}

async function aScene(): Promise<Scene> {
  const proxy = await startProxy(plane.server);
  const kubeconfig = await accountKubeconfig(plane, proxy.url);
  const site = await startSite({ plane, distribution: 'k3s', kubeconfig });
  onTestFinished(async () => {
    await site.close();
    await proxy.close();
  });
  const replica = await site.serve('serve');
  await ready(replica);
  return { site, replica, proxy };
}

async function readyNodes(): Promise<number> {
  return (await nodes(plane.api)).filter((node) => readiness(node) === 'True').length;
}

async function scaled({ site }: Scene, to: number): Promise<void> {
  const ran = await site.cli('pool', 'scale', POOL, '--to', String(to));
  expect(ran).toMatchObject({ exitCode: 0 });
  await waitUntil(`${to} nodes`, async () => (await nodes(plane.api)).length === to);
  expect(await readyNodes()).toBe(to);
}

async function emptied(scene: Scene, made: number): Promise<void> {
  await scaled(scene, 0);
  expect(remains(scene.site)).toEqual({ vms: [], isos: [] });
  expect(judgeTasks(scene.site)).toEqual({ created: made, destroyed: made });
}

it('the API server is killed in the middle, and comes back', async () => {
  const scene = await aScene();
  const growing = scaled(scene, 6);
  await waitUntil('the first node', async () => (await nodes(plane.api)).length > 0);
  await plane.killApiServer();
  await waitUntil('guests that nobody lets in', () => scene.site.sim.inspect().vms.length > 0);
  await plane.startApiServer();
  await growing;
  const shrinking = emptied(scene, 6);
  await waitUntil('the first deletion', () => scene.site.sim.inspect().vms.length < 6);
  await plane.killApiServer();
  await plane.startApiServer();
  await shrinking;
});

it('every connection is cut again and again', async () => {
  const scene = await aScene();
  const random = new SeededRandom(4);
  const over = new AbortController();
  let cuts = 0;
  const cutting = (async () => {
    while (!over.signal.aborted) {
      await systemClock.sleep(300 + random.integer(2_000));
      cuts += scene.proxy.cut();
    }
  })();
  try {
    await scaled(scene, 6);
    await emptied(scene, 6);
  } finally {
    over.abort();
    await cutting;
  }
  expect(cuts).toBeGreaterThan(10);
});

it('history is gone when the connection comes back: 410, and a new list', async () => {
  const scene = await aScene();
  await scaled(scene, 2);
  const [gone] = await nodes(plane.api);
  scene.proxy.block();
  // Nobody tells pvescaler of this; only a new list does.
  await plane.api.patch(`/api/v1/nodes/${gone?.metadata.name}`, {
    metadata: { annotations: { 'example.org/changed': 'while nobody watched' } },
  });
  await plane.compact();
  await plane.killApiServer();
  await plane.startApiServer();
  scene.proxy.unblock();
  await scaled(scene, 3);
  const metrics = await (await fetch(`${scene.replica.health}/metrics`)).text();
  expect(metrics).toMatch(
    /^pvescaler_kubernetes_watch_restarts_total\{.*reason="expired".*\} [1-9]/m,
  );
  await emptied(scene, 3);
});
