// SPDX-License-Identifier: Apache-2.0
// Two replicas of `serve`: the leader is stopped, killed, or frozen and resumed much later.
import { describe, it, type TestContext } from 'vitest';
import { type ControlPlane, startControlPlane, waitUntil } from './controlplane/index.ts';
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

/** The lease has to expire, and the successor waits for requests that may still be in flight. */
const TAKEOVER_MS = 180_000;
/** Shorter than the time a successor waits for the requests of a killed leader. */
const HANDOVER_MS = 25_000;
/** The killed process had no request in flight, and its lock shows that it has ended. */
const RESTART_MS = 20_000;
const SIZE = 6;

interface ReplicaScenario {
  readonly expect: TestContext['expect'];
  readonly plane: ControlPlane;
  readonly site: SimulatedSite;
  readonly leader: Replica;
  readonly other: Replica;
}

async function startScenario(
  { expect, onTestFinished }: TestContext,
  stores: 'shared' | 'separate',
): Promise<ReplicaScenario> {
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
  await waitUntilReady(leader);
  await waitUntil('the first replica leads', () => leader.isLeading());
  const other = await site.serve('second');
  await waitUntilReady(other);
  expect(await other.isLeading()).toBe(false);
  return { expect, plane, site, leader, other };
}

/** Every VM has one Node and every Node one VM. */
async function expectOneNodePerVm({ plane, site }: ReplicaScenario): Promise<void> {
  await waitUntil(
    'a Node per VM',
    async () => {
      const there = await listNodes(plane.api);
      const ids = there
        .filter((node) => readReadiness(node) === 'True')
        .map(({ spec }) => spec.providerID);
      const vms = site.sim.inspect().vms.map(({ id }) => `proxmox://lab/${id}`);
      return vms.length === there.length && vms.every((id) => ids.includes(id));
    },
    TAKEOVER_MS,
  );
}

// The tests run concurrently, each with its own control plane: they mostly wait for a lease to expire.
describe.concurrent('the second replica takes over', () => {
  it(
    'from a leader that was stopped, without waiting for the lease to expire',
    async (context) => {
      const scenario = await startScenario(context, 'shared');
      const { expect, site, leader, other } = scenario;
      const middle = site.waitForCreations(3);
      const scaling = site.startCli('first', 'pool', 'scale', POOL, '--to', String(SIZE));
      await middle;
      scaling.stop();
      leader.program.sendSignal('SIGTERM');
      expect(await leader.program.waitForExit()).toBe(0);
      await waitUntil('the second replica leads', () => other.isLeading(), HANDOVER_MS);
      await waitUntil('all VMs exist', () => site.sim.inspect().vms.length === SIZE, TAKEOVER_MS);
      await expectOneNodePerVm(scenario);
      expect(countVmTasks(site)).toMatchObject({ created: SIZE });
      await scaleToZero(scenario, 'second');
    },
    4 * TAKEOVER_MS,
  );

  it(
    'from a leader that was killed, and finishes its work',
    async (context) => {
      const scenario = await startScenario(context, 'shared');
      const { expect, site, leader, other } = scenario;
      const middle = site.waitForCreations(3);
      const scaling = site.startCli('first', 'pool', 'scale', POOL, '--to', String(SIZE));
      await middle;
      scaling.stop();
      leader.program.sendSignal('SIGKILL');
      await waitUntil('all VMs exist', () => site.sim.inspect().vms.length === SIZE, TAKEOVER_MS);
      await expectOneNodePerVm(scenario);
      expect(countVmTasks(site)).toMatchObject({ created: SIZE });
      other.program.assertRunning();
      await scaleToZero(scenario, 'second');
    },
    4 * TAKEOVER_MS,
  );

  it(
    'from a leader that was frozen, which sends no write after it resumes',
    async (context) => {
      const scenario = await startScenario(context, 'separate');
      const { expect, site, leader, other } = scenario;
      const middle = site.waitForCreations(3);
      const scaling = site.startCli('first', 'pool', 'scale', POOL, '--to', String(SIZE));
      await middle;
      scaling.stop();
      leader.program.sendSignal('SIGSTOP');
      await waitUntil('the second replica leads', () => other.isLeading(), TAKEOVER_MS);
      await expectOneNodePerVm(scenario);
      const before = site.writes.length;
      leader.program.sendSignal('SIGCONT');
      await waitUntil('the first replica no longer leads', async () => !(await leader.isLeading()));
      await scaleToZero(scenario, 'second');
      expect(site.writes.slice(before).filter(({ replica }) => replica === 'first')).toEqual([]);
      countVmTasks(site);
    },
    4 * TAKEOVER_MS,
  );
});

it(
  'the only replica leads again within 20 s after it was killed and restarted',
  async (context) => {
    const { site, leader, other } = await startScenario(context, 'shared');
    other.program.sendSignal('SIGKILL');
    await other.program.waitForExit();
    leader.program.sendSignal('SIGKILL');
    await leader.program.waitForExit();
    const successor = await site.serve('first');
    // How long a program needs until its first line depends on the machine.
    await waitUntil('it has started', async () => (await fetch(`${successor.health}/healthz`)).ok);
    await waitUntil('it leads', () => successor.isLeading(), RESTART_MS);
    await waitUntilReady(successor);
  },
  4 * TAKEOVER_MS,
);

async function scaleToZero({ expect, plane, site }: ReplicaScenario, by: string): Promise<void> {
  const { exitCode } = await site.startCli(by, 'pool', 'scale', POOL, '--to', '0').ended;
  expect(exitCode).toBe(0);
  await waitUntil('all Nodes are deleted', async () => (await listNodes(plane.api)).length === 0);
  expect(listLeftovers(site)).toEqual({ vms: [], isos: [] });
}
