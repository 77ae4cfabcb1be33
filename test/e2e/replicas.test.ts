// SPDX-License-Identifier: Apache-2.0
// Two replicas of `serve`, and what happens when the one that drives is stopped, dies, or is frozen and wakes up much
// later.
import { describe, it, type TestContext } from 'vitest';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
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

/** The lease has to run out, and the successor waits for requests that were on their way. */
const TAKEOVER_MS = 180_000;
/** Less than the successor of a dead one waits for its requests alone. */
const HANDOVER_MS = 25_000;
const SIZE = 6;

interface Scene {
  readonly expect: TestContext['expect'];
  readonly plane: ControlPlane;
  readonly site: SimulatedSite;
  readonly leader: Replica;
  readonly other: Replica;
}

async function aScene(
  { expect, onTestFinished }: TestContext,
  stores: 'one' | 'each its own',
): Promise<Scene> {
  const plane = await startControlPlane();
  onTestFinished(() => plane.stop());
  await applyManifests(plane);
  const kubeconfig = await accountKubeconfig(plane);
  const site = await startSite({
    plane,
    distribution: 'kubeadm',
    kubeconfig,
    stores,
    onTestFinished,
  });
  onTestFinished(() => site.close());
  const leader = await site.serve('first');
  await ready(leader);
  await waitUntil('the first one leads', () => leader.isLeading());
  const other = await site.serve('second');
  await ready(other);
  expect(await other.isLeading()).toBe(false);
  return { expect, plane, site, leader, other };
}

/** Every VM is one Node and every Node one VM. */
async function oneToOne({ plane, site }: Scene): Promise<void> {
  await waitUntil(
    'a Node per VM',
    async () => {
      const there = await nodes(plane.api);
      const ids = there
        .filter((node) => readiness(node) === 'True')
        .map(({ spec }) => spec.providerID);
      const vms = site.sim.inspect().vms.map(({ id }) => `proxmox://lab/${id}`);
      return vms.length === there.length && vms.every((id) => ids.includes(id));
    },
    TAKEOVER_MS,
  );
}

// Side by side, each with a cluster of its own: nearly all of their time they wait for a lease to run out.
describe.concurrent('the other one takes over', () => {
  it(
    'from a leader that was stopped, without waiting for what it has no request of any more',
    async (context) => {
      const scene = await aScene(context, 'one');
      const { expect, site, leader, other } = scene;
      const middle = site.untilCreations(3);
      const scaling = site.cliOf('first', 'pool', 'scale', POOL, '--to', String(SIZE));
      await middle;
      scaling.stop();
      leader.program.signal('SIGTERM');
      expect(await leader.program.ended()).toBe(0);
      await waitUntil('the second one leads', () => other.isLeading(), HANDOVER_MS);
      await waitUntil('all are there', () => site.sim.inspect().vms.length === SIZE, TAKEOVER_MS);
      await oneToOne(scene);
      expect(judgeTasks(site)).toMatchObject({ created: SIZE });
      await emptied(scene, 'second');
    },
    2 * TAKEOVER_MS,
  );

  it(
    'from a leader that was killed, and ends what it began',
    async (context) => {
      const scene = await aScene(context, 'one');
      const { expect, site, leader, other } = scene;
      const middle = site.untilCreations(3);
      const scaling = site.cliOf('first', 'pool', 'scale', POOL, '--to', String(SIZE));
      await middle;
      scaling.stop();
      leader.program.signal('SIGKILL');
      await waitUntil('all are there', () => site.sim.inspect().vms.length === SIZE, TAKEOVER_MS);
      await oneToOne(scene);
      expect(judgeTasks(site)).toMatchObject({ created: SIZE });
      other.program.demandRunning();
      await emptied(scene, 'second');
    },
    2 * TAKEOVER_MS,
  );

  it(
    'from a leader that was frozen, which does nothing when it wakes',
    async (context) => {
      const scene = await aScene(context, 'each its own');
      const { expect, site, leader, other } = scene;
      const middle = site.untilCreations(3);
      const scaling = site.cliOf('first', 'pool', 'scale', POOL, '--to', String(SIZE));
      await middle;
      scaling.stop();
      leader.program.signal('SIGSTOP');
      await waitUntil('the second one leads', () => other.isLeading(), TAKEOVER_MS);
      await oneToOne(scene);
      const before = site.deeds.length;
      leader.program.signal('SIGCONT');
      await waitUntil('the first one knows', async () => !(await leader.isLeading()));
      await emptied(scene, 'second');
      expect(site.deeds.slice(before).filter(({ by }) => by === 'first')).toEqual([]);
      judgeTasks(site);
    },
    2 * TAKEOVER_MS,
  );
});

async function emptied({ expect, plane, site }: Scene, by: string): Promise<void> {
  const { exitCode } = await site.cliOf(by, 'pool', 'scale', POOL, '--to', '0').ended;
  expect(exitCode).toBe(0);
  await waitUntil('no Node is left', async () => (await nodes(plane.api)).length === 0);
  expect(remains(site)).toEqual({ vms: [], isos: [] });
}
