// SPDX-License-Identifier: Apache-2.0
// Scales a pool 0 → 10 → 0 on a real cluster for each join method, with `serve` and the CLI as a user runs them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
import { listNodes, readReadiness } from './support/kube-objects.ts';
import { accountKubeconfig, applyManifests } from './support/manifests.ts';
import {
  countVmTasks,
  listLeftovers,
  POOL,
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

describe.each([
  { distribution: 'k3s', via: 'cloud-init' },
  { distribution: 'rke2', via: 'cloud-init' },
  { distribution: 'kubeadm', via: 'cloud-init' },
  { distribution: 'kubeadm', via: 'agent' },
] as const)('a pool of $distribution nodes that join by $via', ({ distribution, via }) => {
  let site: SimulatedSite;
  beforeAll(async () => {
    const kubeconfig = await accountKubeconfig(plane);
    site = await startSite({ plane, distribution, via, kubeconfig });
  });
  afterAll(() => site.close());

  it('scales to ten and back to zero, and leaves nothing behind', async () => {
    const replica = await site.serve('serve');
    await waitUntilReady(replica);
    const up = await site.runCli('pool', 'scale', POOL, '--to', '10');
    expect(up).toMatchObject({ exitCode: 0 });
    const joined = await listNodes(plane.api);
    expect(joined.filter((node) => readReadiness(node) === 'True')).toHaveLength(10);
    const vms = site.sim.inspect().vms.filter(({ config }) => config['template'] !== '1');
    expect(joined.map(({ spec }) => spec.providerID).sort()).toEqual(
      vms.map(({ id }) => `proxmox://lab/${id}`).sort(),
    );
    const down = await site.runCli('pool', 'scale', POOL, '--to', '0');
    expect(down).toMatchObject({ exitCode: 0 });
    await waitUntil('all Nodes are deleted', async () => (await listNodes(plane.api)).length === 0);
    expect(listLeftovers(site)).toEqual({ vms: [], isos: [] });
    expect(countVmTasks(site)).toMatchObject({ created: 10, destroyed: 10 });
    replica.program.sendSignal('SIGTERM');
    expect(await replica.program.waitForExit()).toBe(0);
  });
});
