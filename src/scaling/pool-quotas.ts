// SPDX-License-Identifier: Apache-2.0
// How many machines of each pool may be removed now.

import { formatCount } from '../model/format-text.ts';
import type { Snapshot } from '../scheduling/index.ts';
import { isLeftOnNode } from './eviction-rules.ts';
import { findPlaceRefusal, isStaying } from './expected-nodes.ts';
import type { ScalingInput, ScalingMachine } from './input.ts';
import type { Candidate, Refused } from './removal-candidate.ts';

/** How many empty machines of a pool are removed at a time, as in the Cluster Autoscaler. */
const MAX_EMPTY_REMOVALS = 10;

/** Counts removals per pool: its minimum, and how many at the same time. */
export class PoolQuotas {
  readonly #staying = new Map<string, number>();
  readonly #drains = new Map<string, number>();
  readonly #empties = new Map<string, number>();

  constructor(input: ScalingInput) {
    const { machines, snapshot } = input;
    for (const machine of machines) {
      if (isStaying(machine)) {
        // A request without a place may stay without one for ever, or be cancelled by this decision.
        if (findPlaceRefusal(machine, input) === undefined) add(this.#staying, machine.pool);
      } else if (machine.isDraining || machine.phase === 'draining')
        add(hasPodsToMove(snapshot, machine) ? this.#drains : this.#empties, machine.pool);
    }
  }

  refusalOf({ machine, node, state, utilization }: Candidate): Refused | undefined {
    const { pool } = machine;
    const { limits } = state;
    const staying = this.#staying.get(pool) ?? 0;
    if (staying <= limits.min) {
      const during = limits.schedule === undefined ? '' : ` during ${limits.schedule}`;
      return {
        code: 'NodePoolAtMinimum',
        reason: `node ${node.name} is kept: pool ${pool} keeps at least ${formatCount(limits.min, 'machine')}${during} and has ${staying}`,
        facts: { min: limits.min, machines: staying },
      };
    }
    const isEmpty = utilization.pods === 0;
    const inProgress = (isEmpty ? this.#empties : this.#drains).get(pool) ?? 0;
    const max = isEmpty ? MAX_EMPTY_REMOVALS : state.pool.config.scaleDown.maxConcurrent;
    if (inProgress < max) return undefined;
    return {
      code: 'NodePoolMaxConcurrent',
      reason: `node ${node.name} waits: ${formatCount(inProgress, isEmpty ? 'empty machine' : 'machine')} of pool ${pool} ${inProgress === 1 ? 'is' : 'are'} being removed, at most ${max} at a time`,
      facts: { inProgress, max },
    };
  }

  use({ machine, utilization }: Candidate): void {
    this.#staying.set(machine.pool, (this.#staying.get(machine.pool) ?? 0) - 1);
    add(utilization.pods === 0 ? this.#empties : this.#drains, machine.pool);
  }
}

function add(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function hasPodsToMove(snapshot: Snapshot, { node }: ScalingMachine): boolean {
  return node !== undefined && snapshot.podsOn(node.name).some((pod) => !isLeftOnNode(pod));
}
