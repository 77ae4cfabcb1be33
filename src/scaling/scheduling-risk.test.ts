// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Pod } from '../model/pod.ts';
import { decide } from './decide.ts';
import type { DrainStep, Plan, ScalingInput } from './index.ts';
import {
  aMachineId,
  anInput,
  aPod,
  aScalingMachine,
  aScalingPool,
  aWorkerNode,
  MINUTE,
  NOW,
  pods,
} from './testing/builders.ts';

/** Machines with nodes `w-1`, `w-2`, …, unneeded for long enough; w-4 is cordoned. */
function workers(count: number, all: readonly Pod[], scaleDown: object): ScalingInput {
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  return anInput({
    pools: [aScalingPool({ scaleDown })],
    nodes: ids.map((id) => aWorkerNode(`w-${id}`, { unschedulable: id === 4 })),
    machines: ids.map((id) => aScalingMachine({ id, on: `w-${id}` })),
    memory: {
      assignments: {},
      unneededSince: Object.fromEntries(ids.map((id) => [aMachineId(id), NOW - 10 * MINUTE])),
    },
    pods: all,
  });
}

function on(node: string, cpu: string, over: Parameters<typeof aPod>[0] = {}): Pod {
  return aPod({ name: `on-${node}-${cpu}`, on: node, cpu, memory: '100Mi', ...over });
}

function drained({ steps }: Plan): readonly string[] {
  return steps.filter((step): step is DrainStep => step.kind === 'drain').map(({ node }) => node);
}

function refusalOf({ refusals }: Plan, node: string) {
  return refusals.find(({ subject }) => subject.kind === 'node' && subject.name === node);
}

describe('a removal whose pods fit only where kube-scheduler would not place them', () => {
  // The emptiest node is w-2, which `first` would be scheduled to; `second` fits only there, and not beside it.
  const tied = { nodeSelector: { 'kubernetes.io/hostname': 'w-2' } };
  const risky = [
    on('w-1', '1', { name: 'first' }),
    on('w-1', '900m', {
      name: 'second',
      spec: {
        containers: [{ resources: { requests: { cpu: '900m', memory: '100Mi' } } }],
        ...tied,
      },
    }),
    on('w-2', '3'),
    on('w-3', '1', { memory: '7Gi' }),
  ];

  it('is refused', () => {
    const { plan } = decide(workers(3, risky, { maxConcurrent: 10 }));
    expect(drained(plan)).toEqual([]);
    expect(refusalOf(plan, 'w-1')).toMatchObject({
      code: 'NodePodsMightWait',
      reason:
        'node w-1 is kept: its pods fit on other nodes, but kube-scheduler would probably place them so that no node is left for pod default/second',
    });
  });

  it('does not take the turn of another machine', () => {
    const other = pods(4, { name: 'other', on: 'w-4', cpu: '480m', memory: '10Mi' });
    const { plan } = decide(workers(4, [...risky, ...other], { maxConcurrent: 1 }));
    expect(drained(plan)).toEqual(['w-4']);
    expect(refusalOf(plan, 'w-4')).toBeUndefined();
    expect(refusalOf(plan, 'w-1')?.code).toBe('NodePodsMightWait');
  });
});

it('a threshold of 1 tries a machine that is requested to the last CPU', () => {
  const scaleDown = { utilizationThreshold: 1 };
  const full = pods(4, { name: 'full', on: 'w-1', cpu: '1', memory: '10Mi' });
  const kept = ['w-2', 'w-3'].map((node) => on(node, '1', { eviction: { doNotDisrupt: true } }));
  const { plan } = decide(workers(3, [...full, ...kept], scaleDown));
  expect(drained(plan)).toEqual(['w-1']);
});
