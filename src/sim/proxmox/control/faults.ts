// SPDX-License-Identifier: Apache-2.0
// Fault injection: by endpoint, host, VM or task type, a number of times or with a probability.
import type { Random } from '../../../ports/random.ts';

export interface FaultRule {
  /** `POST /nodes/{node}/qemu`, as in the API schema; a trailing `*` is a wildcard. Absent = every call. */
  readonly endpoint?: string;
  readonly host?: string;
  readonly vmId?: number;
  /**
   * error: responds with `status` and `message`, without doing the work. delay: works `delayMs` later.
   * hang: sends nothing for `delayMs` (default ten minutes), then resets the connection, without doing the work.
   * response-lost: does the work, then resets the connection. response-delayed: does the work, responds `delayMs`
   * later. host-down: the host loses power before the work. host-down-after: the host loses power after the work.
   * no-worker: the worker of the task cannot be started; what the call did before, such as the lock of a new VM, stays.
   * task-fails: the task fails after `delayMs` of work. task-killed: the same, but the worker does not clean up.
   */
  readonly kind:
    | 'error'
    | 'delay'
    | 'hang'
    | 'response-lost'
    | 'response-delayed'
    | 'host-down'
    | 'host-down-after'
    | 'no-worker'
    | 'task-fails'
    | 'task-killed';
  readonly status?: number;
  readonly message?: string;
  readonly delayMs?: number;
  /** How many times it is injected; absent = once. */
  readonly times?: number;
  /** 0 to 1; absent = always. */
  readonly probability?: number;
  /** Only for task faults: `qmclone`, `qmcreate`, … */
  readonly taskType?: string;
}

export interface FaultTarget {
  readonly endpoint?: string;
  readonly host: string;
  readonly vmId?: number | undefined;
  readonly taskType?: string;
}

interface ArmedFault {
  readonly rule: FaultRule;
  left: number;
}

function matchesPattern(pattern: string | undefined, text: string | undefined): boolean {
  if (pattern === undefined) return true;
  if (pattern.endsWith('*')) return text?.startsWith(pattern.slice(0, -1)) === true;
  return pattern === text;
}

export class Faults {
  readonly #random: Random;
  readonly #armed = new Set<ArmedFault>();
  #injectedCount = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Arms a fault; returns a function that disarms it. */
  add(rule: FaultRule): () => void {
    const armed = { rule, left: rule.times ?? 1 };
    this.#armed.add(armed);
    return () => this.#armed.delete(armed);
  }

  clear(): void {
    this.#armed.clear();
  }

  /** Number of faults injected so far. */
  get injectedCount(): number {
    return this.#injectedCount;
  }

  /** Returns and counts the first armed fault of these kinds that matches the target. */
  take(kinds: readonly FaultRule['kind'][], target: FaultTarget): FaultRule | undefined {
    for (const armed of this.#armed) {
      const { rule } = armed;
      if (!kinds.includes(rule.kind) || !matchesTarget(rule, target)) continue;
      if (rule.probability !== undefined && this.#random.fraction() >= rule.probability) continue;
      armed.left -= 1;
      if (armed.left <= 0) this.#armed.delete(armed);
      this.#injectedCount += 1;
      return rule;
    }
    return undefined;
  }
}

function matchesTarget(rule: FaultRule, target: FaultTarget): boolean {
  return (
    matchesPattern(rule.endpoint, target.endpoint) &&
    matchesPattern(rule.host, target.host) &&
    matchesPattern(rule.taskType, target.taskType) &&
    (rule.vmId === undefined || rule.vmId === target.vmId)
  );
}
