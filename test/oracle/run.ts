// SPDX-License-Identifier: Apache-2.0
// Compares the scheduling simulation with kube-scheduler's own plugins on random clusters.
// Usage: npm run test:oracle -- [--cases N] [--packings N] [--seed S] [--features NAME,…] [--keep]
//   --packings  number of packings; default: one for every 20 cases
//   --features  measure only these features
//   --keep      store shrunk counterexamples in regressions/
//   --examples  only write a small case per feature to regressions/
// Case number i has the seed S + i, so `--seed <that> --cases 1` repeats it. The same holds for packing number
// i.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildGoProgram } from '../support/go-program.ts';
import { runCases } from './cases.ts';
import { writeExamples } from './examples.ts';
import { FEATURES } from './features.ts';
import { OracleProcesses } from './oracle-processes.ts';
import { runPackings } from './packings.ts';
import { type Report, replayRegressions } from './replay-regressions.ts';
import { runScores } from './scores.ts';

/** One packing needs dozens of checks, so fewer packings than cases are needed. */
const CASES_PER_PACKING = 20;
const CASES_PER_SCORE = 4;

const root = join(import.meta.dirname, '..', '..');
const program = join(root, '.cache', 'oracle', 'scheduler');

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string' },
    cases: { type: 'string' },
    packings: { type: 'string' },
    features: { type: 'string' },
    keep: { type: 'boolean', default: false },
    examples: { type: 'boolean', default: false },
  },
});

function log(text: string): void {
  console.log(`oracle: ${text}`);
}

function wholeNumber(name: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`--${name} must be a whole number, not '${text}'`);
  return Number(text);
}

function chosenFeatures(): readonly string[] {
  const known = Object.keys(FEATURES);
  if (options.features === undefined) return known;
  const chosen = options.features.split(',').map((name) => name.trim());
  const unknown = chosen.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new Error(
      `unknown feature '${unknown.join("', '")}'; known features: ${known.join(', ')}`,
    );
  return chosen;
}

function sumReports(reports: readonly Report[]): Report {
  return {
    passed: reports.reduce((sum, { passed }) => sum + passed, 0),
    failed: reports.reduce((sum, { failed }) => sum + failed, 0),
  };
}

async function main(): Promise<void> {
  const seed = wholeNumber('seed', options.seed ?? `${Math.floor(Math.random() * 2 ** 30)}`);
  const cases = wholeNumber('cases', options.cases ?? '20000');
  const packings = wholeNumber(
    'packings',
    options.packings ?? `${Math.ceil(cases / CASES_PER_PACKING)}`,
  );
  const features = chosenFeatures();
  buildGoProgram({ source: join(import.meta.dirname, 'scheduler'), program, log });
  await using oracle = new OracleProcesses(program);
  log(`${cases} cases with seed ${seed} (repeat: --seed ${seed} --cases ${cases})`);
  const scores = Math.ceil(cases / CASES_PER_SCORE);
  const task = { oracle, seed, cases, packings, scores, features, keep: options.keep, log };
  if (options.examples) {
    await writeExamples(task);
    return;
  }
  const reports = [
    await replayRegressions(task),
    await runCases(task),
    await runPackings(task),
    await runScores(task),
  ];
  const { passed, failed } = sumReports(reports);
  mkdirSync(join(root, '.test-results'), { recursive: true });
  writeFileSync(
    join(root, '.test-results', 'oracle.json'),
    `${JSON.stringify({ numPassedTests: passed, numFailedTests: failed })}\n`,
  );
  log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

try {
  await main();
} catch (error) {
  log(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
