// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import type { Pod } from '../model/pod.ts';
import type { PlannedMachine } from '../scheduling/index.ts';
import { sizedTemplate } from './expected-nodes.ts';
import { capacityOf } from './pool-offers.ts';
import { findDrainable } from './replacement-drains.ts';
import { aHost, anInput, aPod, aScalingPool, aWorkerNode } from './testing/builders.ts';
import { candidatesOf } from './testing/candidates.ts';

const ZONE = 'topology.kubernetes.io/zone';

/** One machine of the pool, on any host. */
function aPlannedMachine(): PlannedMachine {
  const pool = aScalingPool();
  const { size } = pool.config;
  const { labels, taints, allocatable } = sizedTemplate(pool, size, { gpuLabel: 'gpu' });
  return {
    pool: 'workers',
    domain: '* workers',
    size: { name: '0', capacity: capacityOf(size), allocatable },
    node: {
      name: 'new-1',
      labels,
      taints,
      allocatable,
      isUnschedulable: false,
      declaredFeatures: [],
    },
    pods: [],
    daemons: [],
  };
}

function drainable(pods: readonly Pod[], maxConcurrent: number): readonly string[] {
  const pools = [aScalingPool({ scaleDown: { maxConcurrent } })];
  const nodes = ['n-1', 'n-2'].map((name) => aWorkerNode(name));
  const input = anInput({ pools, nodes, pods, hosts: ['pve1', 'pve2'].map((name) => aHost(name)) });
  const candidates = candidatesOf(
    nodes.map(({ name }) => pods.filter(({ nodeName }) => nodeName === name)),
    pools[0],
  );
  const plan = { machines: [aPlannedMachine()], candidates };
  return findDrainable(input, input.snapshot, plan).map(({ node }) => node.name);
}

it('a new machine is in the zone of the host that it will probably be placed on', () => {
  const inZone = (zone: string) => aPod({ on: 'n-1', spec: { nodeSelector: { [ZONE]: zone } } });
  expect(drainable([inZone('pve1')], 1)).toContain('n-1');
  expect(drainable([inZone('pve3')], 1)).not.toContain('n-1');
});

it('machines that are drained at the same time get no pods of each other', () => {
  const pods = [
    aPod({ name: 'a', on: 'n-1', cpu: '3', memory: '1Gi' }),
    aPod({ name: 'b', on: 'n-2', cpu: '600m', memory: '1Gi' }),
    aPod({ name: 'c', on: 'n-2', cpu: '600m', memory: '1Gi' }),
  ];
  // The large pod is scheduled to the new machine, and leaves no space for both others there.
  expect(drainable(pods, 2)).toEqual(['n-1']);
  expect(drainable(pods.slice(0, 2), 2)).toEqual(['n-1', 'n-2']);
});
