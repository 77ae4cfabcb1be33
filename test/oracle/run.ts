// SPDX-License-Identifier: Apache-2.0
// Holds the scheduling simulation against kube-scheduler's own plugins on random clusters.
// Usage: npm run test:oracle -- [--cases N] [--packings N] [--seed S] [--features NAME,…] [--keep]
//   --packings  so many, instead of one for every 20 cases;
//   --features  only these features' shares are measured; --keep  shrunk counterexamples go to regressions/;
//   --examples  writes a small case per feature to regressions/ instead
// Case number i has the seed S + i, so `--seed <that> --cases 1` repeats it; so has packing number i.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildGoProgram } from '../support/go-program.ts';
import { runCases } from './cases.ts';
import { writeExamples } from './examples.ts';
import { FEATURES } from './features.ts';
import { Judges } from './judges.ts';
import { runPacks } from './packs.ts';
import { type Report, replay } from './replay.ts';

/** One packing asks for dozens of verdicts, so few are as good as many of the others. */
const SHARE = 20;

const root = join(import.meta.dirname, '..', '..');
const program = join(root, '.cache', 'oracle', 'judge');

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

function say(text: string): void {
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
    throw new Error(`no feature '${unknown.join("', '")}'; there are: ${known.join(', ')}`);
  return chosen;
}

function total(reports: readonly Report[]): Report {
  return {
    passed: reports.reduce((sum, { passed }) => sum + passed, 0),
    failed: reports.reduce((sum, { failed }) => sum + failed, 0),
  };
}

async function main(): Promise<void> {
  const seed = wholeNumber('seed', options.seed ?? `${Math.floor(Math.random() * 2 ** 30)}`);
  const cases = wholeNumber('cases', options.cases ?? '20000');
  const packings = wholeNumber('packings', options.packings ?? `${Math.ceil(cases / SHARE)}`);
  const features = chosenFeatures();
  buildGoProgram({ source: join(import.meta.dirname, 'judge'), program, say });
  await using judges = new Judges(program);
  say(`${cases} cases with seed ${seed} (repeat: --seed ${seed} --cases ${cases})`);
  const task = { judge: judges, seed, cases, packings, features, keep: options.keep, say };
  if (options.examples) {
    await writeExamples(task);
    return;
  }
  const reports = [await replay(task), await runCases(task), await runPacks(task)];
  const { passed, failed } = total(reports);
  mkdirSync(join(root, '.test-results'), { recursive: true });
  writeFileSync(
    join(root, '.test-results', 'oracle.json'),
    `${JSON.stringify({ numPassedTests: passed, numFailedTests: failed })}\n`,
  );
  say(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

try {
  await main();
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
