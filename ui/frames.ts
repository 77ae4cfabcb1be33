// SPDX-License-Identifier: Apache-2.0
// Work that is spread over frames: with a thousand machines the page scrolls and answers while it is filled.

/** A screen shows a frame every 16 ms; layout and painting need the other half. */
const FRAME_MS = 8;
const FRAME_STEPS = 100;

/** Yields where the next frame may continue. */
export type Work = Generator<undefined, void>;

const waiting = new Map<string, Work>();

/** Replaces work of the same name that is not finished: it would show an older state. */
export function schedule(name: string, work: Work): void {
  if (waiting.size === 0) requestAnimationFrame(run);
  waiting.set(name, work);
}

function run(): void {
  const end = performance.now() + FRAME_MS;
  let steps = 0;
  for (const [name, work] of waiting) {
    while (performance.now() < end && steps < FRAME_STEPS) {
      steps += 1;
      if (work.next().done !== true) continue;
      waiting.delete(name);
      break;
    }
  }
  if (waiting.size > 0) requestAnimationFrame(run);
}
