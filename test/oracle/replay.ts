// SPDX-License-Identifier: Apache-2.0
// Replays the counterexamples of the past, against the simulation and against the oracle itself.

import type { Judges } from './judges.ts';
import { differences, judged, simulated } from './oracle.ts';
import { readRegressions } from './regressions.ts';

export interface Task {
  readonly judge: Judges;
  readonly seed: number;
  readonly cases: number;
  readonly packings: number;
  readonly features: readonly string[];
  /** Whether counterexamples become regressions. */
  readonly keep: boolean;
  readonly say: (text: string) => void;
}

export interface Report {
  readonly passed: number;
  readonly failed: number;
}

export async function replay({ judge, say }: Task): Promise<Report> {
  let failed = 0;
  const all = readRegressions();
  for (const { file, found } of all) {
    const { rejections } = await judged(judge, found);
    const stale = differences(found, rejections, found.rejections);
    const wrong = differences(found, found.rejections, simulated(found));
    if (stale.length > 0) say(`${file}: the oracle now says otherwise: ${JSON.stringify(stale)}`);
    if (wrong.length > 0) say(`${file}: ${found.title}: ${JSON.stringify(wrong)}`);
    if (stale.length + wrong.length > 0) failed += 1;
  }
  say(`${all.length - failed} of ${all.length} regressions agree`);
  return { passed: all.length - failed, failed };
}
