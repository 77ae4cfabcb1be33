// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Pod } from '../model/pod.ts';
import { findEvictionBlock, RemainingBudgets } from './eviction-rules.ts';
import { aPod, aPoolConfig } from './testing/builders.ts';

/** Why none of the pods may be evicted, with a budget for all of them. */
function blockOf(pods: readonly Pod[], disruptionsAllowed: number) {
  const selector = { selects: 'matching' as const, requirements: [] };
  return findEvictionBlock(pods, {
    scaleDown: aPoolConfig().scaleDown,
    expendablePriority: -10,
    budgets: new RemainingBudgets([
      { name: 'web', namespace: 'default', selector, disruptionsAllowed },
    ]),
  });
}

describe('a pod below the expendable priority', () => {
  const pod = (over: Parameters<typeof aPod>[0] = {}): Pod => {
    const { controller: _, ...bare } = aPod({ priority: -11, ...over });
    return bare;
  };

  it('blocks where it would not leave the node', () => {
    expect(blockOf([pod()], 1)).toBeUndefined();
    expect(blockOf([pod()], 0)?.code).toBe('DisruptionBudget');
    const spec = { tolerations: [{ operator: 'Exists' as const }] };
    expect(blockOf([pod({ spec })], 1)?.code).toBe('ToleratesDrain');
  });
});

describe('pods that must run on the same node', () => {
  const labels = { app: 'twins' };
  const required = [
    { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } },
  ];
  const spec = {
    affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } },
  };
  const twins = ['a', 'b'].map((name) => aPod({ name, labels, spec }));

  it('block unless their PodDisruptionBudget allows to evict them all', () => {
    expect(blockOf(twins, 2)).toBeUndefined();
    expect(blockOf(twins, 1)?.reason).toBe(
      'PodDisruptionBudget default/web allows 1 more disruptions of 2 pods that must run on the same node, so that the first ones evicted would wait for the others',
    );
  });

  it('do not block alone, or beside pods that they do not select', () => {
    expect(blockOf(twins.slice(1), 1)).toBeUndefined();
    expect(blockOf([...twins.slice(1), aPod({ name: 'other' })], 1)).toBeUndefined();
  });
});
