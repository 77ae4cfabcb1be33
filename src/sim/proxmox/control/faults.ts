// SPDX-License-Identifier: Apache-2.0
// Things that go wrong on purpose: by endpoint and moment, a given number of times or with a probability.
import type { Random } from '../../../ports/random.ts';

export interface FaultRule {
  /** `POST /nodes/{node}/qemu`, as the API names it; `*` at an end stands for anything. Absent = every call. */
  readonly endpoint?: string;
  readonly host?: string;
  readonly vmId?: number;
  /**
   * error: answered with `status` and `message`, nothing done. delay: `delayMs` later. hang: no answer for
   * `delayMs` (ten minutes), then the connection breaks; nothing done. lost: done, but the connection breaks.
   * answer-delayed: done, the answer comes `delayMs` later. host-down: the host dies before doing anything.
   * host-down-after: it dies when it has done it. task-fails: the task fails after `delayMs` of work.
   * task-killed: as that, but the worker cleans nothing up.
   */
  readonly kind:
    | 'error'
    | 'delay'
    | 'hang'
    | 'response-lost'
    | 'response-delayed'
    | 'host-down'
    | 'host-down-after'
    | 'task-fails'
    | 'task-killed';
  readonly status?: number;
  readonly message?: string;
  readonly delayMs?: number;
  /** How often it strikes; absent = once. */
  readonly times?: number;
  /** 0…1; absent = always. */
  readonly probability?: number;
  /** Task types for the task faults: `qmclone`, … */
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

  /** Arms a fault; returns the way to disarm it. */
  add(rule: FaultRule): () => void {
    const armed = { rule, left: rule.times ?? 1 };
    this.#armed.add(armed);
    return () => this.#armed.delete(armed);
  }

  clear(): void {
    this.#armed.clear();
  }

  /** How many have struck. */
  get injectedCount(): number {
    return this.#injectedCount;
  }

  /** The fault of one of these kinds that strikes now, if any. */
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
