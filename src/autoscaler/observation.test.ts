// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { aClusterNode } from '../ports/fakes/sample-cluster.ts';
import { schedulerNode } from './observation.ts';

const NOT_READY = { key: 'node.kubernetes.io/not-ready', value: '', effect: 'NoSchedule' } as const;
const UNREACHABLE = {
  key: 'node.kubernetes.io/unreachable',
  value: '',
  effect: 'NoExecute',
} as const;
const OTHER = { key: 'dedicated', value: 'db', effect: 'NoSchedule' } as const;

it('a Ready Node has no taints that the controller manager is about to remove', () => {
  const taints = [NOT_READY, UNREACHABLE, OTHER];
  expect(schedulerNode(aClusterNode({ ready: true, taints })).taints).toEqual([OTHER]);
});

it('a Node that is not Ready keeps its taints', () => {
  const taints = [NOT_READY, UNREACHABLE, OTHER];
  expect(schedulerNode(aClusterNode({ ready: false, taints })).taints).toEqual(taints);
});
