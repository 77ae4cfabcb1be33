// SPDX-License-Identifier: Apache-2.0
// Runs the engine through virtual hours with faults, crashes, clock jumps and external changes.
// Usage: npm run soak -- [--seeds N] [--seed S] [--jobs J] [--json]
//   --seed  first of N consecutive seeds; `--seeds 1 --seed S` replays one seed exactly
import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { formatCoverageTable, formatFeatures, listEmptyCells, mergeCoverage } from './coverage.ts';
import type { SeedResult } from './scenario.ts';

/** With fewer seeds the coverage table may have empty cells. */
const MIN_SEEDS_FOR_COVERAGE = 100;
const PROGRESS_EVERY = 10;
const root = join(import.meta.dirname, '..', '..');

const { values: options } = parseArgs({
  options: {
    seeds: { type: 'string' },
    seed: { type: 'string' },
    jobs: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

function parseWholeNumber(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new Error(`--${name} must be a whole number of at most nine digits, not '${text}'`);
  return Number(text);
}

function print(text: string): void {
  if (!options.json) console.log(`soak: ${text}`);
}

function printFailure({ seed, violations }: SeedResult): void {
  if (violations.length === 0) return;
  print(`seed ${seed} failed; replay it with: SOAK_LOG=1 npm run soak -- --seeds 1 --seed ${seed}`);
  for (const violation of violations.slice(0, 5)) print(`  ${violation}`);
}

function runSeeds(seeds: readonly number[], jobs: number): Promise<readonly SeedResult[]> {
  const waiting = [...seeds];
  // On SIGTERM the running seeds finish and are reported; the waiting seeds are dropped.
  process.once('SIGTERM', () => waiting.splice(0));
  const results: SeedResult[] = [];
  const give = (worker: ChildProcess) => {
    const seed = waiting.shift();
    if (seed === undefined) worker.disconnect();
    else worker.send(seed);
  };
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const worker = fork(join(import.meta.dirname, 'worker.ts'));
      worker.on('message', (result: SeedResult) => {
        results.push(result);
        printFailure(result);
        if (results.length % PROGRESS_EVERY === 0)
          print(`${results.length} of ${seeds.length} seeds done`);
        give(worker);
      });
      worker.on('error', reject);
      worker.on('exit', (code) => {
        if (code === 0) resolve();
        else reject(new Error(`a soak worker exited with ${code ?? 'a signal'}`));
      });
      give(worker);
    });
  return Promise.all(Array.from({ length: Math.min(jobs, seeds.length) }, one)).then(() => results);
}

function report(results: readonly SeedResult[]): void {
  const coverage = mergeCoverage(results.map((result) => result.coverage));
  const exercised = mergeCoverage(results.map((result) => result.exercised));
  const failed = results.filter(({ violations }) => violations.length > 0);
  const empty = results.length >= MIN_SEEDS_FOR_COVERAGE ? listEmptyCells(coverage, exercised) : [];
  const passed = results.length - failed.length;
  const numFailedTests = failed.length + empty.length;
  mkdirSync(join(root, '.test-results'), { recursive: true });
  writeFileSync(
    join(root, '.test-results', 'soak.json'),
    `${JSON.stringify({ numPassedTests: passed, numFailedTests })}\n`,
  );
  if (options.json) console.log(JSON.stringify({ results, coverage, exercised, empty }));
  print(`faults by phase of the machine they hit:\n${formatCoverageTable(coverage)}`);
  print(`features:\n${formatFeatures(exercised)}`);
  for (const cell of empty) print(`not covered: ${cell}`);
  print(`${passed} passed, ${numFailedTests} failed`);
  process.exitCode = numFailedTests === 0 ? 0 : 1;
}

async function main(): Promise<void> {
  const count = parseWholeNumber('seeds', options.seeds ?? '300');
  const first = parseWholeNumber('seed', options.seed ?? `${Math.floor(Math.random() * 2 ** 28)}`);
  const jobs = parseWholeNumber('jobs', options.jobs ?? `${Math.min(8, availableParallelism())}`);
  print(`${count} seeds, starting at ${first} (repeat with: --seeds ${count} --seed ${first})`);
  const seeds = Array.from({ length: count }, (_, at) => first + at);
  report(await runSeeds(seeds, Math.max(1, jobs)));
}

try {
  await main();
} catch (error) {
  console.error(`soak: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
