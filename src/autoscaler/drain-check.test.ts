// SPDX-License-Identifier: Apache-2.0
import { beforeEach, describe, expect, it } from 'vitest';
import type { MachineId } from '../model/machine.ts';
import type { Pod } from '../model/pod.ts';
import { NO_RESOURCES } from '../model/resources.ts';
import { MemoryCluster } from '../ports/fakes/memory-cluster.ts';
import { aClusterNode, aClusterPod } from '../ports/fakes/sample-cluster.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { drainCheck } from './drain-check.ts';
import { ClusterObserver } from './observation.ts';
import { aWorkerPool } from './testing/test-site.ts';

let clock: VirtualClock;
let cluster: MemoryCluster;
beforeEach(() => {
  clock = new VirtualClock();
  cluster = new MemoryCluster({ clock, random: new SeededRandom(1) });
  for (const name of ['drained', 'other']) cluster.state.putNode(aClusterNode({ name }));
});

/** A pod of a ReplicaSet. Nodes have 2 CPUs. */
function aPod(name: string, nodeName: string, over: Partial<Pod> & { cpuMilli: number }): Pod {
  const { cpuMilli, ...rest } = over;
  const requests = { ...NO_RESOURCES, cpuMilli, pods: 1 };
  const controller = { kind: 'ReplicaSet', name: 'web', uid: 'web' };
  return aClusterPod({ name, nodeName, requests, held: requests, controller, ...rest });
}

interface CheckOptions {
  readonly drainingNodes?: readonly string[];
  readonly pool?: string;
  /** Uid of the Node that is drained. */
  readonly uid?: string;
  /** Pods on the node as the API server lists them; absent: as in the view. */
  readonly listed?: readonly Pod[];
}

/** Adds the pods and checks the drain of node `drained`. */
function check(
  pods: readonly Pod[],
  {
    drainingNodes = ['drained'],
    pool = 'workers',
    uid = 'uid-of-drained',
    listed,
  }: CheckOptions = {},
) {
  for (const pod of pods) cluster.state.putPod(pod);
  const checkDrain = drainCheck({
    observer: new ClusterObserver({ cluster, clock }),
    settings: () => ({ pools: [aWorkerPool({ name: 'workers' })], expendablePriority: -10 }),
    drainingNodes: () => drainingNodes,
  });
  const draining = {
    machine: '00000000-0000-4000-8000-000000000001' as MachineId,
    pool,
    node: { name: 'drained', uid },
    pods: listed ?? pods.filter(({ nodeName }) => nodeName === 'drained'),
  };
  return checkDrain(draining, undefined);
}

const NO_PLACE = { ok: false, reason: 'pod default/moved fits on no other node any more' };

describe('the check of a drain', () => {
  it('allows it when the pods fit on another node', async () => {
    expect(await check([aPod('moved', 'drained', { cpuMilli: 500 })])).toEqual({ ok: true });
  });

  it('refuses it when the place of a pod was taken', async () => {
    const pods = [
      aPod('moved', 'drained', { cpuMilli: 500 }),
      aPod('new', 'other', { cpuMilli: 1_800 }),
    ];
    expect(await check(pods)).toEqual(NO_PLACE);
  });

  it('refuses it when a pod of a StatefulSet that another drain has evicted will need the place', async () => {
    cluster.state.putNode(aClusterNode({ name: 'before' }));
    const controller = { kind: 'StatefulSet', name: 'db', uid: 'db' };
    const evicted = { cpuMilli: 1_800, controller, isTerminating: true };
    const pods = [aPod('db-0', 'before', evicted), aPod('moved', 'drained', { cpuMilli: 500 })];
    const drainingNodes = ['before', 'drained'];
    expect(await check(pods, { drainingNodes })).toEqual(NO_PLACE);
  });

  it('refuses it when the other node is not Ready', async () => {
    cluster.state.putNode(aClusterNode({ name: 'other', ready: false }));
    expect(await check([aPod('moved', 'drained', { cpuMilli: 500 })])).toEqual(NO_PLACE);
  });

  it('refuses it when the other node is drained too', async () => {
    const drainingNodes = ['drained', 'other'];
    expect(await check([aPod('moved', 'drained', { cpuMilli: 500 })], { drainingNodes })).toEqual(
      NO_PLACE,
    );
  });

  it('refuses it when a pending pod needs the place', async () => {
    const pods = [
      aPod('moved', 'drained', { cpuMilli: 1_500 }),
      aPod('waiting', '', { cpuMilli: 1_500 }),
    ];
    cluster.state.putNode(aClusterNode({ name: 'drained', unschedulable: true }));
    expect(await check(pods)).toEqual(NO_PLACE);
  });

  it.each([
    [500, { ok: true }],
    [1_500, NO_PLACE],
  ])('counts a nominated pod of %i m once', async (cpuMilli, expected) => {
    const nominated = { cpuMilli, nominatedNodeName: 'other', priority: 1 };
    const pods = [aPod('moved', 'drained', { cpuMilli: 1_200 }), aPod('next', '', nominated)];
    expect(await check(pods)).toEqual(expected);
  });

  it('refuses it when a pod must not be evicted any more', async () => {
    const pod = aPod('moved', 'drained', { cpuMilli: 100, eviction: { doNotDisrupt: true } });
    expect(await check([pod])).toEqual({
      ok: false,
      reason: 'pod default/moved has annotation karpenter.sh/do-not-disrupt',
    });
  });

  it('refuses it when a pod must not be evicted any more, also beside one whose budget blocks', async () => {
    const blocked = aPod('blocked', 'drained', { cpuMilli: 100, labels: { app: 'db' } });
    const kept = aPod('kept', 'drained', { cpuMilli: 100, eviction: { doNotDisrupt: true } });
    const budget = {
      namespace: 'default',
      name: 'db',
      selector: {
        selects: 'matching' as const,
        requirements: [{ key: 'app', operator: 'In' as const, values: ['db'] }],
      },
      disruptionsAllowed: 0,
    };
    cluster.state.putWorkloads({ disruptionBudgets: [budget] });
    expect(await check([blocked, kept])).toEqual({
      ok: false,
      reason: 'pod default/kept has annotation karpenter.sh/do-not-disrupt',
    });
  });

  it('refuses it when the pool was removed from the config, whose rules are not known any more', async () => {
    const pod = aPod('moved', 'drained', { cpuMilli: 100, eviction: { doNotDisrupt: true } });
    expect(await check([pod], { pool: 'removed' })).toEqual({
      ok: false,
      reason: 'pool removed is not in the config any more',
    });
  });

  it('refuses it when the Node is another one', async () => {
    expect(await check([], { uid: 'uid-of-another' })).toEqual({
      ok: false,
      reason: 'Node drained is gone or is another one',
    });
  });

  it('waits for a view that has all pods of the node', async () => {
    const listed = [aPod('late', 'drained', { cpuMilli: 100 })];
    await expect(check([], { listed })).rejects.toThrow(/does not have pod default\/late yet/);
  });

  it('waits for a fresh view', async () => {
    cluster.disconnect();
    await clock.advance(10 * 60_000);
    await expect(check([])).rejects.toThrow(/the drain of Node drained waits/);
  });
});
