// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { decide } from '../scaling/index.ts';
import {
  aMachineId,
  anInput,
  aPod,
  aScalingMachine,
  aWorkerNode,
  MINUTE,
  NOW,
  pods,
} from '../scaling/testing/builders.ts';
import { formatExplanation, formatPlan } from './format-plan.ts';

it('shows the steps of a plan, the moves of a drain, and why the rest is not done', () => {
  const input = anInput({
    nodes: [aWorkerNode('w-1'), aWorkerNode('w-2')],
    machines: [aScalingMachine({ id: 1, on: 'w-1' }), aScalingMachine({ id: 2, on: 'w-2' })],
    pods: [
      aPod({ name: 'web', on: 'w-1', cpu: '1', memory: '100Mi' }),
      aPod({ name: 'db', on: 'w-2', cpu: '3', memory: '100Mi' }),
      aPod({ name: 'huge', cpu: '64' }),
    ],
    memory: { assignments: {}, unneededSince: { [aMachineId(1)]: NOW - 10 * MINUTE } },
  });
  expect(formatPlan(decide(input).plan)).toBe(
    `2026-03-04T12:00:00.000Z: 2 nodes, 1 pending pod (1 get no machine), 1 unneeded machine

drain    node w-1 has been unneeded for 10m: cpu 25 % and memory 1.2 % requested, and its pod fits on w-2
         default/web → w-2

Pods without a machine:
  pod default/huge fits no pool: pool workers: cpu: 64 requested, 0 of 4 used

Nodes that are kept:
  node w-2 is needed: cpu 75 % and memory 1.2 % requested, threshold 50 %
`,
  );
});

it('shows a few refusals of each kind, or all', () => {
  const { plan } = decide(anInput({ pods: pods(8, { cpu: '64' }) }));
  expect(formatPlan(plan)).toContain('  and 3 more for the same reason (--all shows them)\n');
  expect(formatPlan(plan, { all: true }).match(/fits no pool/g)).toHaveLength(8);
});

it('says that there is nothing to do', () => {
  expect(formatPlan(decide(anInput()).plan)).toBe(
    '2026-03-04T12:00:00.000Z: 0 nodes, 0 pending pods, 0 unneeded machines\n\nNothing to do.\n',
  );
});

it('shows an explanation', () => {
  const lines = [{ kind: 'state' as const, text: 'has 3 machines', facts: {} }];
  const subject = { kind: 'pool' as const, name: 'workers' };
  expect(formatExplanation({ subject, isKnown: true, lines })).toBe(
    'pool workers\n  has 3 machines\n',
  );
});
