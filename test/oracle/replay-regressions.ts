// SPDX-License-Identifier: Apache-2.0
// Replays earlier counterexamples with the simulation and with the oracle itself.

import { findDifferences, runOracle, runSimulation } from './compare.ts';
import type { OracleProcesses } from './oracle-processes.ts';
import { readRegressions } from './regressions.ts';

export interface Task {
  readonly oracle: OracleProcesses;
  readonly seed: number;
  readonly cases: number;
  readonly packings: number;
  readonly scores: number;
  readonly features: readonly string[];
  /** Whether to store counterexamples as regressions. */
  readonly keep: boolean;
  readonly log: (text: string) => void;
}

export interface Report {
  readonly passed: number;
  readonly failed: number;
}

export async function replayRegressions({ oracle, log }: Task): Promise<Report> {
  let failed = 0;
  const all = readRegressions();
  for (const { file, found } of all) {
    const { rejections } = await runOracle(oracle, found);
    const stale = findDifferences(found, rejections, found.rejections);
    const wrong = findDifferences(found, found.rejections, runSimulation(found));
    if (stale.length > 0) log(`${file}: the oracle's result has changed: ${JSON.stringify(stale)}`);
    if (wrong.length > 0) log(`${file}: ${found.title}: ${JSON.stringify(wrong)}`);
    if (stale.length + wrong.length > 0) failed += 1;
  }
  log(`${all.length - failed} of ${all.length} regressions agree`);
  return { passed: all.length - failed, failed };
}
