// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Pod } from '../model/pod.ts';
import {
  type EvictionContext,
  findEvictionBlock,
  findMoveBlock,
  RemainingBudgets,
} from './eviction-rules.ts';
import { aPod, aPoolConfig } from './testing/builders.ts';

/** With a budget for all pods. */
function contextOf(disruptionsAllowed: number): EvictionContext {
  const selector = { selects: 'matching' as const, requirements: [] };
  return {
    scaleDown: aPoolConfig().scaleDown,
    expendablePriority: -10,
    budgets: new RemainingBudgets([
      { name: 'web', namespace: 'default', selector, disruptionsAllowed },
    ]),
  };
}

/** Why none of the pods may be evicted. */
function blockOf(pods: readonly Pod[], disruptionsAllowed: number) {
  return findEvictionBlock(pods, contextOf(disruptionsAllowed));
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

describe('several pods with one PodDisruptionBudget', () => {
  const web = (count: number) =>
    Array.from({ length: count }, (_, index) => aPod({ name: `web-${index}` }));

  it('are evicted one after the other, but not beside those of another node', () => {
    const context = contextOf(2);
    expect(findEvictionBlock(web(3), context)).toBeUndefined();
    context.budgets.use(web(1));
    expect(findEvictionBlock(web(1), context)).toBeUndefined();
    expect(findEvictionBlock(web(2), context)?.reason).toBe(
      'PodDisruptionBudget default/web allows 1 more disruptions of 2 pods, beside those of other removals',
    );
  });
});

describe('pods that must run together', () => {
  const labels = { app: 'twins' };
  const twinsIn = (topologyKey: string): readonly Pod[] => {
    const required = [{ topologyKey, labelSelector: { matchLabels: labels } }];
    const podAffinity = { requiredDuringSchedulingIgnoredDuringExecution: required };
    return ['a', 'b'].map((name) => aPod({ name, labels, spec: { affinity: { podAffinity } } }));
  };
  const twins = twinsIn('kubernetes.io/hostname');

  it('block unless their PodDisruptionBudget allows to evict them all', () => {
    expect(blockOf(twins, 2)).toBeUndefined();
    expect(blockOf(twins, 1)?.reason).toBe(
      'PodDisruptionBudget default/web allows 1 more disruptions of 2 pods that must run together, so that the first ones evicted would wait for the others',
    );
  });

  it('block in the same zone only if they would move to another one', () => {
    const zonal = twinsIn('topology.kubernetes.io/zone');
    expect(blockOf(zonal, 1)).toBeUndefined();
    expect(findMoveBlock(zonal, contextOf(1), () => true)).toBeUndefined();
    expect(findMoveBlock(zonal, contextOf(1), () => false)?.code).toBe('DisruptionBudget');
    expect(findMoveBlock(zonal, contextOf(2), () => false)).toBeUndefined();
  });

  it('do not block alone, or beside pods that they do not select', () => {
    expect(blockOf(twins.slice(1), 1)).toBeUndefined();
    expect(blockOf([...twins.slice(1), aPod({ name: 'other' })], 1)).toBeUndefined();
  });
});
