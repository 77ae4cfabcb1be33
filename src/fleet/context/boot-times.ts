// SPDX-License-Identifier: Apache-2.0
// When a guest is best asked for the first time. A question that comes too early is lost, and the next one comes later:
// where boots are alike, waiting for the slower of them loses less. Where they are not, nothing is lost by asking
// early and again.

/** A guest that is up answers at once. One that has not by then may be up a moment later, and is asked again. */
export const ASK_AGAIN_MS = 1_500;
/** Of the difference to what was known, once there is something to go by. */
const LEARNING = 0.1;
/** What is given up of it whenever a guest was up by then, and nobody knows since when. */
const HOPE = 0.0003;
const NARROWING = 0.002;
/** Of the time it took: who was silent that shortly before has been seen to come up. */
const PRECISE = 0.1;
/** So many spreads: a vain question costs more than a late one. */
const CAUTION = 1.5;
/** Of the shortest boot, where boots differ. */
const EARLY = 0.9;
/** How fast one long boot after the other makes the shortest one longer. */
const LENGTHENING = 0.02;

export interface Boot {
  /** Since the start: the last question that found nobody; undefined where the first one was answered. */
  readonly silentMs: number | undefined;
  readonly upMs: number;
}

interface Known {
  /** How many it was learned from. */
  readonly count: number;
  readonly usualMs: number;
  /** How far off boots usually are. */
  readonly spreadMs: number;
  readonly shortestMs: number;
}

export class BootTimes {
  #known: Known | undefined;

  /** Since the start. Zero while nothing is known. */
  get firstQuestionMs(): number {
    if (this.#known === undefined) return 0;
    const { usualMs, spreadMs, shortestMs } = this.#known;
    return spreadMs > ASK_AGAIN_MS ? EARLY * shortestMs : usualMs + CAUTION * spreadMs;
  }

  add({ silentMs, upMs }: Boot): void {
    const widthMs = upMs - (silentMs ?? Number.NEGATIVE_INFINITY);
    if (widthMs <= Math.max(2 * ASK_AGAIN_MS, PRECISE * upMs)) {
      this.#seen(upMs - widthMs / 2, widthMs / 4);
    } else if (silentMs !== undefined || upMs < (this.#known?.usualMs ?? 0)) {
      this.#seenBefore(upMs);
    } else if (this.#known !== undefined) {
      this.#known = narrowed(this.#known);
    }
  }

  #seen(bootMs: number, doubtMs: number): void {
    const known = this.#known ?? { ...nothing(bootMs), spreadMs: doubtMs };
    const count = known.count + 1;
    const weight = Math.max(LEARNING, 1 / count);
    const offMs = Math.max(doubtMs, Math.abs(bootMs - known.usualMs));
    this.#known = {
      count,
      usualMs: known.usualMs + weight * (bootMs - known.usualMs),
      spreadMs: known.spreadMs + weight * (offMs - known.spreadMs),
      shortestMs: Math.min(bootMs, known.shortestMs + LENGTHENING * (bootMs - known.shortestMs)),
    };
  }

  /** An answer long after the last silence, or to a scout, only says that it took no longer. */
  #seenBefore(upMs: number): void {
    const known = this.#known ?? nothing(upMs);
    if (upMs >= known.usualMs) this.#known = known;
    else this.#known = { ...known, ...nothing(upMs), spreadMs: known.spreadMs, count: 1 };
  }
}

function nothing(bootMs: number): Known {
  return { count: 0, usualMs: bootMs, spreadMs: ASK_AGAIN_MS / 4, shortestMs: bootMs };
}

/** It was up by the time it was asked, and nobody knows since when. */
function narrowed(known: Known): Known {
  return {
    ...known,
    usualMs: known.usualMs * (1 - HOPE),
    spreadMs: known.spreadMs * (1 - NARROWING),
    shortestMs: known.shortestMs * EARLY,
  };
}

/**
 * Who always waits long enough never sees that boots have become faster: a few guests are asked once before their time.
 * Undefined for the others.
 */
export function scoutingMs(id: string, firstQuestionMs: number): number | undefined {
  const share = SCOUTS[id.at(-1) ?? ''];
  return share === undefined ? undefined : share * firstQuestionMs;
}

/** By the last digit of the machine's id: which part of the time they wait. */
const SCOUTS: Readonly<Record<string, number>> = { '0': 0.75, '8': 0.9 };
