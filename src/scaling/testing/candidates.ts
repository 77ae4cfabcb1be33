// SPDX-License-Identifier: Apache-2.0
// Machines that may be replaced, for tests.

import type { Pod } from '../../model/pod.ts';
import type { ScalingPool } from '../index.ts';
import { poolStates } from '../pool-offers.ts';
import type { Candidate } from '../removal-candidate.ts';
import { utilizationOf } from '../utilization.ts';
import { anInput, aPod, aScalingMachine, aScalingPool, aWorkerNode } from './builders.ts';

type Requests = { readonly cpu: string; readonly memory: string };

/** Nodes n-1, n-2, … with these pods, or with one pod each. */
export function candidatesOf(
  pods: readonly (Requests | readonly Pod[])[],
  pool: ScalingPool = aScalingPool(),
): readonly Candidate[] {
  const state = poolStates(anInput({ pools: [pool] })).get(pool.config.name);
  if (state === undefined) throw new Error('the pool has no state');
  return pods.map((some, index) => {
    const name = `n-${index + 1}`;
    const running = 'cpu' in some ? [aPod({ name: `pod-${index + 1}`, on: name, ...some })] : some;
    const machine = aScalingMachine({ id: index + 1, on: name });
    const node = aWorkerNode(name);
    const utilization = utilizationOf(node, running, pool.config);
    return { machine, node, state, pods: running, utilization };
  });
}
