// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type SimCluster, startSimCluster } from '../../src/sim/kubernetes/testing/sim-cluster.ts';
import { SCENES, type Stage } from './scenes.ts';
import { Timeline } from './timeline.ts';

let cluster: SimCluster;
beforeEach(() => {
  cluster = startSimCluster();
  for (const name of ['one', 'two', 'three', 'four', 'five']) cluster.addNode(name);
});
afterEach(() => cluster.stop());

/** A day on nodes without machines; what a scene waits for must happen within two minutes. */
function createStage(): Stage {
  const proxmox = { inspect: () => ({ vms: [] }) } as unknown as Stage['site']['proxmox'];
  const site = { proxmox, kubernetes: cluster.sim } as unknown as Stage['site'];
  return {
    site,
    timeline: new Timeline(site),
    isOnce: false,
    isStandalone: true,
    sleep: () => Promise.resolve(),
    pause: () => Promise.resolve(),
    waitUntil: async (what, isDone) => {
      for (let second = 0; !(await isDone()); second += 1) {
        if (second > 120) throw new Error(`${what}: this did not happen`);
        await cluster.advance(1);
      }
    },
  };
}

const morning = SCENES.find(({ name }) => name === 'morning');
const web = { name: 'web', namespace: 'default' };

it('plays the morning again after a person has scaled a service and added pods', async () => {
  const stage = createStage();
  await morning?.play(stage);
  expect(cluster.pods()).toHaveLength(8);
  cluster.sim.change('apps/v1', 'deployments', { metadata: web, spec: { replicas: 4 } });
  await cluster.call('POST', '/api/v1/namespaces/default/pods', {
    metadata: { name: 'added' },
    spec: { containers: [{ name: 'main', image: 'x' }] },
  });
  await cluster.advance(60);
  expect(cluster.pods()).toHaveLength(7);
  await morning?.play(stage);
  expect(cluster.pods()).toHaveLength(7);
});

it('creates a service again that a person has deleted', async () => {
  const stage = createStage();
  await morning?.play(stage);
  cluster.sim.remove('apps/v1', 'deployments', web);
  await cluster.advance(60);
  expect(cluster.pods()).toHaveLength(2);
  await morning?.play(stage);
  expect(cluster.pods()).toHaveLength(8);
});
