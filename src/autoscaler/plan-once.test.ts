// SPDX-License-Identifier: Apache-2.0
import { expect, it, onTestFinished } from 'vitest';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import {
  canonicalJson,
  decide,
  parseStoredInput,
  restoreInput,
  storeInput,
} from '../scaling/index.ts';
import { planOnce } from './index.ts';
import { aWorkerPool, SETTINGS, TestSite } from './testing/test-site.ts';

async function aSite(pool = aWorkerPool()) {
  const site = new TestSite([pool]);
  onTestFinished(() => site.stop());
  const { fleet } = site.start();
  await site.advance(5);
  const plan = () =>
    planOnce({
      fleet,
      cluster: site.cluster,
      clock: site.clock,
      random: new SeededRandom(1),
      pools: Object.values(site.settings.pools),
      settings: SETTINGS,
      signal: new AbortController().signal,
    });
  return { site, plan };
}

it('plans a machine for a pending pod from a reading of its own, and requests nothing', async () => {
  const { site, plan } = await aSite();
  site.addPod('web');
  const { input, decision } = await plan();
  expect(decision.plan.steps).toMatchObject([{ kind: 'create', pool: 'workers' }]);
  expect(input.hosts.length).toBeGreaterThan(0);
  expect(await site.parts.store.intents.list()).toEqual([]);
});

it('counts the machines of the process that drives', async () => {
  const { site, plan } = await aSite();
  site.addPod('web');
  await site.advance(60);
  const { input, decision } = await plan();
  expect(input.machines).toMatchObject([{ phase: 'ready', node: { isReady: true } }]);
  expect(decision.plan.steps).toEqual([]);
});

it('gives the same plan from what it saved', async () => {
  const { site, plan } = await aSite();
  site.addPod('web');
  const { input, decision, objects } = await plan();
  const stored = parseStoredInput(canonicalJson(storeInput(input, objects)));
  expect(canonicalJson(decide(restoreInput(stored!)))).toBe(canonicalJson(decision));
});

it('knows how long a machine has been unneeded', async () => {
  const { site, plan } = await aSite();
  site.addPod('web');
  await site.advance(120);
  site.deletePod('web');
  await site.advance(300);
  const { decision } = await plan();
  const kept = decision.plan.refusals.find(({ code }) => code === 'NodeUnneededTooShort');
  expect(kept?.facts['unneededMs']).toBeGreaterThan(240_000);
  expect(kept?.facts['unneededMs']).toBeLessThanOrEqual(300_000);
});

it('knows it also of a machine that is kept although its time is over', async () => {
  const { limits } = aWorkerPool();
  const { site, plan } = await aSite(aWorkerPool({ limits: { ...limits, min: 1 } }));
  await site.advance(30 * 60);
  const { decision } = await plan();
  expect(decision.plan.refusals.map(({ code }) => code)).toEqual(['NodePoolAtMinimum']);
});

it('fails with the error of the only region, if it cannot be read', async () => {
  const { site, plan } = await aSite();
  site.isProxmoxReadable = false;
  await expect(plan()).rejects.toMatchObject({ code: 'PVE_UNREACHABLE' });
});

it('fails when the cluster has not been read for long', async () => {
  const { site, plan } = await aSite();
  site.cluster.disconnect();
  await site.advance(300);
  const planned = expect(plan()).rejects.toMatchObject({
    code: 'KUBERNETES_UNREACHABLE',
    message: 'the cluster cannot be read: its last update is too old',
  });
  await site.advance(31);
  await planned;
});
