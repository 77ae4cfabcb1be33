// SPDX-License-Identifier: Apache-2.0
// Whether guests are up. Asking a silent one takes seconds and holds one of its host's few workers: no round waits
// for the answer, a host is asked about few guests at once, and none is asked before it can possibly be up.
import type { Machine } from '../../model/machine.ts';

const AT_ONCE_PER_HOST = 2;
/** Of the usual shortest boot; the next one may be a little faster. */
const HOPE = 0.9;
/** How fast one boot after the other makes the usual one longer. */
const LEARNING = 0.2;

export type Answer = 'up' | 'silent' | 'unknown';

export interface Question {
  readonly machine: Machine;
  readonly now: number;
  /** All that are booting, for whose turn it is. */
  readonly machines: Iterable<Machine>;
  readonly ask: () => Promise<boolean>;
}

interface Asked {
  readonly at: number;
  outcome: 'asking' | 'taken' | 'up' | 'silent' | Error;
}

/** What one process knows of guests; losing it costs a question or two. */
export class Guests {
  readonly #asked = new Map<string, Asked>();
  readonly #bootMs = new Map<string, number>();

  /** The answer that came since the last time; the next question is asked when its turn has come. */
  answerTo(question: Question): Answer {
    const { machine } = question;
    const asked = this.#asked.get(machine.id);
    const outcome = asked?.outcome ?? 'taken';
    if (asked !== undefined && outcome !== 'asking') asked.outcome = 'taken';
    if (outcome instanceof Error) throw outcome;
    if (outcome === 'up') {
      this.#learn(question);
      return 'up';
    }
    if (outcome !== 'asking' && this.#hasItsTurn(question)) this.#ask(question);
    return outcome === 'silent' ? 'silent' : 'unknown';
  }

  forget(id: string): void {
    this.#asked.delete(id);
  }

  /** Who was asked longest ago comes first: a guest that never answers takes nobody's turn. */
  #hasItsTurn({ machine, machines, now }: Question): boolean {
    if (!this.#isDue(machine, now)) return false;
    const askedAt = this.#askedAt(machine);
    let before = 0;
    for (const other of machines) {
      if (!isBeside(other, machine)) continue;
      const isWaiting = this.#isDue(other, now) && this.#askedAt(other) < askedAt;
      if (isWaiting || this.#asked.get(other.id)?.outcome === 'asking') before += 1;
    }
    return before < AT_ONCE_PER_HOST;
  }

  #askedAt({ id }: Machine): number {
    return this.#asked.get(id)?.at ?? 0;
  }

  #isDue({ pool, phaseSince }: Machine, now: number): boolean {
    return now >= phaseSince + HOPE * (this.#bootMs.get(pool) ?? 0);
  }

  #ask({ machine, now, ask }: Question): void {
    const asked: Asked = { at: now, outcome: 'asking' };
    this.#asked.set(machine.id, asked);
    void listen(asked, ask);
  }

  #learn({ machine, now }: Question): void {
    const { pool, phaseSince } = machine;
    const bootMs = now - phaseSince;
    const usual = this.#bootMs.get(pool) ?? bootMs;
    this.#bootMs.set(pool, Math.min(bootMs, usual + LEARNING * (bootMs - usual)));
  }
}

function isBeside({ id, phase, placement }: Machine, machine: Machine): boolean {
  return phase === 'booting' && id !== machine.id && placement?.host === machine.placement?.host;
}

async function listen(asked: Asked, ask: () => Promise<boolean>): Promise<void> {
  try {
    asked.outcome = (await ask()) ? 'up' : 'silent';
  } catch (error) {
    asked.outcome = error instanceof Error ? error : new Error(String(error));
  }
}
