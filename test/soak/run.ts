// SPDX-License-Identifier: Apache-2.0
// Soaks the engine in virtual days full of faults, crashes and people.
// Usage: npm run soak -- [--seeds N] [--seed S] [--jobs J] [--json]
//   --seed  the first seed, N follow from there; one seed alone is replayed exactly by `--seeds 1 --seed S`
import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { coverageTable, emptyCells, merged } from './coverage.ts';
import type { SeedResult } from './scenario.ts';

/** Fewer seeds than this cannot be expected to fill the table. */
const ENOUGH_FOR_COVERAGE = 100;
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

function wholeNumber(name: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} must be a whole number, not '${text}'`);
  return Number(text);
}

function say(text: string): void {
  if (!options.json) console.log(`soak: ${text}`);
}

function tell({ seed, violations }: SeedResult): void {
  if (violations.length === 0) return;
  say(`seed ${seed} failed (replay: npm run soak -- --seeds 1 --seed ${seed})`);
  for (const violation of violations.slice(0, 5)) say(`  ${violation}`);
}

function runSeeds(seeds: readonly number[], jobs: number): Promise<readonly SeedResult[]> {
  const waiting = [...seeds];
  // Called off: what is under way is brought to its end and reported.
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
        tell(result);
        if (results.length % PROGRESS_EVERY === 0)
          say(`${results.length} of ${seeds.length} seeds`);
        give(worker);
      });
      worker.on('error', reject);
      worker.on('exit', (code) => {
        if (code === 0) resolve();
        else reject(new Error(`a worker ended with ${code ?? 'a signal'}`));
      });
      give(worker);
    });
  return Promise.all(Array.from({ length: Math.min(jobs, seeds.length) }, one)).then(() => results);
}

function report(results: readonly SeedResult[]): void {
  const coverage = merged(results);
  const failed = results.filter(({ violations }) => violations.length > 0);
  const empty = results.length >= ENOUGH_FOR_COVERAGE ? emptyCells(coverage) : [];
  const passed = results.length - failed.length;
  const numFailedTests = failed.length + empty.length;
  mkdirSync(join(root, '.test-results'), { recursive: true });
  writeFileSync(
    join(root, '.test-results', 'soak.json'),
    `${JSON.stringify({ numPassedTests: passed, numFailedTests })}\n`,
  );
  if (options.json) console.log(JSON.stringify({ results, coverage, empty }));
  say(`faults by the phase they struck in:\n${coverageTable(coverage)}`);
  for (const cell of empty) say(`never happened: ${cell}`);
  say(`${passed} passed, ${numFailedTests} failed`);
  process.exitCode = numFailedTests === 0 ? 0 : 1;
}

async function main(): Promise<void> {
  const count = wholeNumber('seeds', options.seeds ?? '300');
  const first = wholeNumber('seed', options.seed ?? `${Math.floor(Math.random() * 2 ** 28)}`);
  const jobs = wholeNumber('jobs', options.jobs ?? `${Math.min(8, availableParallelism())}`);
  say(`${count} seeds from ${first} (repeat: --seeds ${count} --seed ${first})`);
  const seeds = Array.from({ length: count }, (_, at) => first + at);
  report(await runSeeds(seeds, Math.max(1, jobs)));
}

try {
  await main();
} catch (error) {
  console.error(`soak: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
