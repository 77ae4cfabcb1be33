// SPDX-License-Identifier: Apache-2.0
// Pauses a pool whose new machines help no pod. Counts in memory: after a restart the count begins again, while the pause
// itself is durable.
import { AUTOSCALER } from '../model/intent.ts';
import type { Machine } from '../model/machine.ts';
import { isDaemonSetPod } from '../model/pod.ts';
import type { Snapshot } from '../scheduling/index.ts';

/** A ready machine that has had no pod for so long helped none. */
const HELP_MS = 5 * 60_000;

export interface BreakerSources {
  /** Machines of the pool whose records are kept. */
  readonly machines: readonly Machine[];
  /** Undefined when it is not known any more. */
  readonly requesterOf: (machine: Machine) => string | undefined;
  readonly snapshot: Snapshot;
  readonly now: number;
}

export interface Outcome {
  readonly machine: Machine;
  readonly hasHelped: boolean;
  /** Why it has not. */
  readonly reason: string;
}

export class CircuitBreaker {
  readonly #limit: number;
  /** Machines whose outcome has been counted. */
  readonly #judged = new Set<string>();
  #failures: Outcome[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Why the pool is to be paused now; undefined: it is not. */
  observe(sources: BreakerSources): string | undefined {
    const outcomes = sources.machines
      .filter((machine) => !this.#judged.has(machine.id))
      .flatMap((machine) => judge(machine, sources) ?? [])
      .toSorted((a, b) => a.machine.requestedAt - b.machine.requestedAt);
    for (const outcome of outcomes) {
      this.#judged.add(outcome.machine.id);
      if (outcome.hasHelped) this.#failures = [];
      else this.#failures.push(outcome);
    }
    const kept = new Set<string>(sources.machines.map(({ id }) => id));
    for (const id of this.#judged) if (!kept.has(id)) this.#judged.delete(id);
    if (this.#failures.length < this.#limit) return undefined;
    const last = this.#failures.at(-1);
    const count = this.#failures.length;
    this.#failures = [];
    return `${count} new machines in a row helped no pod; the last one: ${last?.reason ?? ''}`;
  }
}

/** Undefined while it is not known whether the machine helps. */
function judge(machine: Machine, sources: BreakerSources): Outcome | undefined {
  const { phase, phaseSince, nodeName, failure } = machine;
  if (sources.requesterOf(machine) !== AUTOSCALER) return undefined;
  if (phase === 'failed') {
    // A machine that never had a place is a matter of capacity, not of the pool's machines.
    if (failure === undefined || failure.phase === 'requested') return undefined;
    return { machine, hasHelped: false, reason: failure.message };
  }
  if (nodeName === undefined || (phase !== 'ready' && phase !== 'draining')) return undefined;
  const hasPods = sources.snapshot
    .podsOn(nodeName)
    .some((pod) => !isDaemonSetPod(pod) && !pod.isMirror && !pod.isTerminating);
  if (hasPods) return { machine, hasHelped: true, reason: '' };
  if (phase === 'ready' && sources.now - phaseSince < HELP_MS) return undefined;
  return { machine, hasHelped: false, reason: `no pod was scheduled to Node ${nodeName}` };
}
