// SPDX-License-Identifier: Apache-2.0
// What the Cluster Autoscaler sees while its provider dies in the middle, or Proxmox does not answer.
import { describe, it, type TestContext } from 'vitest';
import { type ControlPlane, startControlPlane } from './controlplane/index.ts';
import { type ProviderSite, startProvider } from './support/autoscaler/provider-site.ts';
import { start } from './support/autoscaler/workload.ts';
import { nodes, readiness } from './support/kube-objects.ts';
import { applyManifests } from './support/manifests.ts';
import { judgeTasks, POOL, ready, remains } from './support/simulated-site.ts';

/** The lease has to run out, and the successor waits for requests that were on their way. */
const TAKEOVER_MS = 180_000;
const UNAVAILABLE = 14;

interface Scene {
  readonly plane: ControlPlane;
  readonly provider: ProviderSite;
}

async function aScene({ onTestFinished }: TestContext): Promise<Scene> {
  const plane = await startControlPlane();
  onTestFinished(() => plane.stop());
  await applyManifests(plane);
  const provider = await startProvider({ plane, onTestFinished });
  onTestFinished(() => provider.close());
  return { plane, provider };
}

const WORKLOAD = { name: 'app', nodeSelector: { 'autoscaler.proxmox/group': POOL } };

// Side by side, each with a cluster of its own: nearly all of their time they wait.
describe.concurrent('the Cluster Autoscaler', () => {
  it(
    'has the right number of machines when the server was killed in mid scale-up',
    async (context) => {
      const { expect } = context;
      const { plane, provider } = await aScene(context);
      const { site, replica } = provider;
      const autoscaler = provider.autoscaler('c', [POOL]);
      const workload = await start(plane.api, { ...WORKLOAD, count: 6 });
      let isBackAgain = false;
      const killing = async () => {
        await site.untilCreations(3);
        await replica.program.restart();
        isBackAgain = true;
      };
      await Promise.all([killing(), autoscaler.until(() => isBackAgain)]);
      await autoscaler.until(() => workload.running(), TAKEOVER_MS);
      await ready(replica);
      expect(site.sim.inspect().vms).toHaveLength(6);
      expect(judgeTasks(site)).toEqual({ created: 6, destroyed: 0 });
      expect(await autoscaler.target(POOL)).toBe(6);
      await workload.remove();
      await autoscaler.until(async () => (await nodes(plane.api)).length === 0);
      expect(remains(site)).toEqual({ vms: [], isos: [] });
      expect(judgeTasks(site)).toEqual({ created: 6, destroyed: 6 });
    },
    2 * TAKEOVER_MS,
  );

  it(
    'goes on reading while Proxmox is away, grows no pool beyond a minute, and loses no node',
    async (context) => {
      const { expect } = context;
      const { plane, provider } = await aScene(context);
      const { site } = provider;
      const autoscaler = provider.autoscaler('c', [POOL]);
      const client = provider.client('c');
      const workload = await start(plane.api, { ...WORKLOAD, count: 2 });
      await autoscaler.until(() => workload.running());
      const before = (await nodes(plane.api)).map(({ metadata }) => metadata.uid).sort();
      // Every call hangs for a moment and breaks, and nothing is done.
      const heal = site.sim.faults.add({ kind: 'hang', delayMs: 500, times: 1_000_000 });
      await client.call('NodeGroupIncreaseSize', { id: POOL, delta: 1 });
      expect(await autoscaler.target(POOL)).toBe(3);
      await autoscaler.until(async () => {
        const [group] = await autoscaler.loop();
        expect(group).toMatchObject({ id: POOL, target: 3 });
        expect(group?.instances).toHaveLength(3);
        // A delta beyond the limit changes nothing while increases are still taken.
        const { code } = await client.failure('NodeGroupIncreaseSize', { id: POOL, delta: 8 });
        return code === UNAVAILABLE;
      });
      const refused = await client.failure('NodeGroupIncreaseSize', { id: POOL, delta: 1 });
      expect(refused).toMatchObject({ code: UNAVAILABLE });
      expect(refused.details).toContain('Proxmox has not been seen for a minute');
      expect(autoscaler.failedLoops).toBe(0);
      const during = await nodes(plane.api);
      expect(during.map(({ metadata }) => metadata.uid).sort()).toEqual(before);
      expect(during.map(readiness)).toEqual(['True', 'True']);
      heal();
      const more = await start(plane.api, { ...WORKLOAD, name: 'more', count: 1 });
      await autoscaler.until(() => more.running());
      expect((await nodes(plane.api)).map(({ metadata }) => metadata.uid)).toEqual(
        expect.arrayContaining(before),
      );
      expect(judgeTasks(site)).toEqual({ created: 3, destroyed: 0 });
    },
    2 * TAKEOVER_MS,
  );
});
