// SPDX-License-Identifier: Apache-2.0
// When asking how a task is doing is worth a request. Tasks of one kind take about as long as the last ones did: none is
// asked about before it can possibly have ended, and from then on often, since what follows waits for it.

/** Of the usual shortest task; the next one may be a little faster. */
const HOPE = 0.95;
/** How fast one long task after the other makes the usual one longer. */
const LEARNING = 0.2;
const UNSEEN = 0.95;
/** Between two questions, of the time that has passed: nobody notices that little. */
const SHARE = 0.05;
const SHORTEST_MS = 100;
/** A task that fails does so early: until it may have ended it is looked at now and then, less and less often. */
const EARLY_MS = 5_000;
const EARLY_SHARE = 0.2;
/** While nobody knows how long it takes, and at most. */
const LONGEST_MS = 500;

export interface Tempoed {
  /** Whose task it is: one at a time. */
  readonly of: string;
  readonly upid: string;
  /** What takes about as long. */
  readonly kind: string;
  readonly startedAt: number;
}

type Answer = 'running' | 'ended' | 'unknown';

interface Asked {
  readonly upid: string;
  readonly at: number;
  readonly answer: Answer;
}

/** What one process knows of tasks; losing it costs a few questions. */
export class Tempo {
  readonly #asked = new Map<string, Asked>();
  readonly #usualMs = new Map<string, number>();

  /** When it may have ended; never, once that has been told: then it is no longer the task that is waited for. */
  endsAt(task: Tempoed): number {
    const asked = this.#askedAbout(task);
    const isOver = asked !== undefined && asked.answer !== 'running';
    return isOver ? Number.POSITIVE_INFINITY : this.#dueAt(task);
  }

  /** A clock that was set back says nothing about how long it has been. */
  isDue(task: Tempoed, now: number): boolean {
    const since = this.#askedAbout(task)?.at ?? task.startedAt;
    return now < since || now >= this.#dueAt(task);
  }

  /** How long it took is learned once. */
  answered(task: Tempoed, answer: Answer, now: number): void {
    const before = this.#askedAbout(task)?.answer;
    const tookMs = Math.max(0, now - task.startedAt);
    // One that nobody saw running may have ended long before.
    if (before === 'running' && answer === 'ended') this.#learn(task, tookMs);
    if (before === undefined && answer === 'ended') this.#learn(task, UNSEEN * tookMs);
    this.#asked.set(task.of, { upid: task.upid, at: now, answer });
  }

  forget(of: string): void {
    this.#asked.delete(of);
  }

  #dueAt(task: Tempoed): number {
    const { kind, startedAt } = task;
    const usual = this.#usualMs.get(kind);
    const hopedAt = startedAt + (usual === undefined ? LONGEST_MS : HOPE * usual);
    const asked = this.#askedAbout(task);
    // What was done about its end has come to nothing: it is asked about once more.
    if (asked === undefined || asked.answer !== 'running') {
      return Math.min(hopedAt, startedAt + EARLY_MS);
    }
    const tookMs = asked.at - startedAt;
    if (asked.at < hopedAt) return Math.min(hopedAt, asked.at + EARLY_SHARE * tookMs);
    const gapMs = usual === undefined ? LONGEST_MS : SHARE * tookMs;
    return asked.at + Math.min(Math.max(gapMs, SHORTEST_MS), LONGEST_MS);
  }

  #askedAbout({ of, upid }: Tempoed): Asked | undefined {
    const asked = this.#asked.get(of);
    return asked?.upid === upid ? asked : undefined;
  }

  #learn({ kind }: Tempoed, tookMs: number): void {
    const usual = this.#usualMs.get(kind) ?? tookMs;
    this.#usualMs.set(kind, Math.min(tookMs, usual + LEARNING * (tookMs - usual)));
  }
}
