// SPDX-License-Identifier: Apache-2.0
// A pool goes 0 → 10 → 0 on a real cluster, for each way of joining: by `serve` and the CLI, as a user runs them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { nodes, readiness } from './support/kube-objects.ts';
import { accountKubeconfig, applyManifests } from './support/manifests.ts';
import {
  judgeTasks,
  POOL,
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

describe.each([
  { distribution: 'k3s', via: 'cloud-init' },
  { distribution: 'rke2', via: 'cloud-init' },
  { distribution: 'kubeadm', via: 'cloud-init' },
  { distribution: 'kubeadm', via: 'agent' },
] as const)('a pool of $distribution nodes, by $via', ({ distribution, via }) => {
  let site: SimulatedSite;
  beforeAll(async () => {
    const kubeconfig = await accountKubeconfig(plane);
    site = await startSite({ plane, distribution, via, kubeconfig });
  });
  afterAll(() => site.close());

  it('grows to ten and shrinks to none, and nothing is left', async () => {
    const replica = await site.serve('serve');
    await ready(replica);
    const up = await site.cli('pool', 'scale', POOL, '--to', '10');
    expect(up).toMatchObject({ exitCode: 0 });
    const joined = await nodes(plane.api);
    expect(joined.filter((node) => readiness(node) === 'True')).toHaveLength(10);
    const vms = site.sim.inspect().vms.filter(({ config }) => config['template'] !== '1');
    expect(joined.map(({ spec }) => spec.providerID).sort()).toEqual(
      vms.map(({ id }) => `proxmox://lab/${id}`).sort(),
    );
    const down = await site.cli('pool', 'scale', POOL, '--to', '0');
    expect(down).toMatchObject({ exitCode: 0 });
    await waitUntil('no Node is left', async () => (await nodes(plane.api)).length === 0);
    expect(remains(site)).toEqual({ vms: [], isos: [] });
    expect(judgeTasks(site)).toMatchObject({ created: 10, destroyed: 10 });
    replica.program.signal('SIGTERM');
    expect(await replica.program.ended()).toBe(0);
  });
});
