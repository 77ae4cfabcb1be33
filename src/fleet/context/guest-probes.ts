// SPDX-License-Identifier: Apache-2.0
// Whether guests are up. Asking a silent one takes seconds and holds one of its host's few workers: no round waits
// for the answer, a host has few questions open at once, and no guest is asked before it can possibly be up.
import type { Machine } from '../../model/machine.ts';
import { ASK_AGAIN_MS, BootTimes, scoutingMs } from './boot-times.ts';

const AT_ONCE_PER_HOST = 2;
/** Of the time that it has been at it: who is silent for long is asked less and less often. */
const ASK_AGAIN_SHARE = 0.05;
/** Who has not answered by then is no example. */
const LONG_BOOT_MS = 120_000;
/** How long somebody waits for those ahead while his host has no question open. */
const IDLE_HOST_MS = 2 * ASK_AGAIN_MS;

export type Answer = 'up' | 'silent' | 'unknown';

export interface Question {
  readonly machine: Machine;
  readonly now: number;
  /** All that are booting, for whose turn it is. */
  readonly machines: Iterable<Machine>;
  readonly ask: () => Promise<boolean>;
}

interface Asked {
  /** Questions without an answer yet. */
  open: number;
  /** The last question. */
  at: number;
  /** The last one but that. */
  before: number | undefined;
  /** What came since somebody looked. */
  news: 'up' | 'silent' | Error | undefined;
  /** Which question was the first to find somebody, and the last that found nobody. */
  found: { readonly at: number; readonly before: number | undefined } | undefined;
}

/** What one process knows of guests; losing it costs a question or two. */
export class Guests {
  readonly #asked = new Map<string, Asked>();
  readonly #bootTimes = new Map<string, BootTimes>();
  /** Those that wait for their turn, which comes with somebody's answer. */
  readonly #queued = new Set<string>();
  readonly #onAnswer: () => void;

  constructor(onAnswer: () => void = () => undefined) {
    this.#onAnswer = onAnswer;
  }

  /** When there is something to be done about it, as far as only this machine is concerned. */
  nextAt(machine: Machine, now: number): number {
    if (this.#asked.get(machine.id)?.news !== undefined) return now;
    return this.#queued.has(machine.id) ? Number.POSITIVE_INFINITY : this.#dueAt(machine);
  }

  /** The answer that came since the last time; the next question is asked when its turn has come. */
  answerTo(question: Question): Answer {
    const { machine, now } = question;
    const asked = this.#asked.get(machine.id);
    const news = asked?.news;
    if (asked !== undefined) asked.news = undefined;
    if (news instanceof Error) throw news;
    if (news === 'up') {
      this.#learn(machine, asked?.found);
      return 'up';
    }
    if (this.#isDue(machine, now)) {
      if (this.#hasItsTurn(question)) this.#ask(question);
      else this.#queued.add(machine.id);
    }
    return news ?? 'unknown';
  }

  forget(id: string): void {
    this.#asked.delete(id);
    this.#queued.delete(id);
  }

  #hasItsTurn(question: Question): boolean {
    const { machine, now } = question;
    let open = this.#openOf(machine);
    let ahead = 0;
    for (const other of question.machines) {
      if (!isBeside(other, machine)) continue;
      open += this.#openOf(other);
      if (this.#isBefore(other, question)) ahead += 1;
    }
    // Those ahead may be kept from asking, or each wait for another: nobody waits for long where nobody is asked.
    if (open === 0 && now - this.#dueAt(machine) >= IDLE_HOST_MS) return true;
    return open + ahead < AT_ONCE_PER_HOST;
  }

  /**
   * Who was asked longest ago comes first: a guest that never answers takes nobody's turn. But while nobody knows how
   * long it takes, those that have been at it longest tell it to the others.
   */
  #isBefore(other: Machine, { machine, now }: Question): boolean {
    if (!this.#isDue(other, now)) return false;
    const isLearning = !this.#bootTimes.has(machine.pool) && other.pool === machine.pool;
    if (isLearning && now - other.phaseSince < LONG_BOOT_MS) return isOlder(other, machine);
    return this.#askedAt(other) < this.#askedAt(machine);
  }

  #openOf({ id }: Machine): number {
    return this.#asked.get(id)?.open ?? 0;
  }

  #askedAt({ id }: Machine): number {
    return this.#asked.get(id)?.at ?? 0;
  }

  /** A clock that was set back says nothing about how long it has been. */
  #isDue(machine: Machine, now: number): boolean {
    const since = this.#asked.get(machine.id)?.at ?? machine.phaseSince;
    if (now < since) return this.#openOf(machine) < AT_ONCE_PER_HOST;
    return now >= this.#dueAt(machine);
  }

  #dueAt({ id, pool, phaseSince }: Machine): number {
    const asked = this.#asked.get(id);
    const firstMs = this.#bootTimes.get(pool)?.firstQuestionMs ?? 0;
    if (asked === undefined) return phaseSince + (scoutingMs(id, firstMs) ?? firstMs);
    if (asked.open >= AT_ONCE_PER_HOST) return Number.POSITIVE_INFINITY;
    const gapMs = Math.max(ASK_AGAIN_MS, ASK_AGAIN_SHARE * (asked.at - phaseSince));
    return Math.max(asked.at + gapMs, phaseSince + firstMs);
  }

  #ask({ machine: { id }, now, ask }: Question): void {
    const known = this.#asked.get(id);
    const asked = known ?? {
      open: 0,
      at: now,
      before: undefined,
      news: undefined,
      found: undefined,
    };
    const before = known?.at;
    Object.assign(asked, { open: asked.open + 1, at: now, before });
    this.#asked.set(id, asked);
    this.#queued.delete(id);
    void this.#listen(asked, ask);
  }

  async #listen(asked: Asked, ask: () => Promise<boolean>): Promise<void> {
    const { at, before } = asked;
    try {
      if (await ask()) {
        asked.news = 'up';
        asked.found ??= { at, before };
      } else if (asked.found === undefined) {
        asked.news = 'silent';
      }
    } catch (error) {
      asked.news ??= error instanceof Error ? error : new Error(String(error));
    }
    asked.open -= 1;
    this.#queued.clear();
    this.#onAnswer();
  }

  #learn({ pool, phaseSince }: Machine, found: Asked['found']): void {
    if (found === undefined) return;
    const since = (at: number) => Math.max(0, at - phaseSince);
    const silentMs = found.before === undefined ? undefined : since(found.before);
    const upMs = since(found.at);
    // Nobody asked for long: it says more about us than about how long a boot takes.
    if (upMs > LONG_BOOT_MS && upMs - (silentMs ?? 0) > LONG_BOOT_MS / 2) return;
    const times = this.#bootTimes.get(pool) ?? new BootTimes();
    this.#bootTimes.set(pool, times);
    times.add({ silentMs, upMs });
  }
}

function isOlder(one: Machine, other: Machine): boolean {
  if (one.phaseSince !== other.phaseSince) return one.phaseSince < other.phaseSince;
  return one.id < other.id;
}

function isBeside({ id, phase, placement }: Machine, { id: own, placement: at }: Machine): boolean {
  if (phase !== 'booting' || id === own) return false;
  return placement?.region === at?.region && placement?.host === at?.host;
}
