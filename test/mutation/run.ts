// SPDX-License-Identifier: Apache-2.0
// Mutation testing with Stryker, area by area.
// Usage: npm run mutation -- [area…] [--only FILE…] [--sample [--seed N] [--seconds N]]
// With --only: some files of the area, for example while writing their tests. With --sample: ranges of lines drawn by the seed (default: from the commit), limited in time.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, matchesGlob } from 'node:path';
import { parseArgs } from 'node:util';
import { AREAS, type Area, NEVER_MUTATED } from './areas.ts';
import type { TestedMutant } from './reporter.ts';
import { countTested, drawRanges, scoreSample, THRESHOLD, UNDETECTED } from './sample.ts';

const root = join(import.meta.dirname, '..', '..');
const cache = '.cache/stryker';
const RANGES_PER_AREA = 8;
const SAMPLE_SECONDS = 280;
/** Mutants of an area, even when the time is over before. */
const MIN_TESTED = 10;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', multiple: true },
    sample: { type: 'boolean', default: false },
    seed: { type: 'string' },
    seconds: { type: 'string', default: String(SAMPLE_SECONDS) },
  },
});

function fail(message: string): never {
  console.error(`mutation: ${message}`);
  process.exit(1);
}

function selectAreas(): readonly (readonly [string, Area])[] {
  const unknown = positionals.filter((name) => !(name in AREAS));
  if (unknown.length > 0) {
    fail(`unknown area ${unknown.join(', ')}; areas: ${Object.keys(AREAS).join(', ')}`);
  }
  return Object.entries(AREAS).filter(
    ([name]) => positionals.length === 0 || positionals.includes(name),
  );
}

/** The same for every run on one commit. */
function commitSeed(): number {
  const { stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' });
  return Number.parseInt(stdout.slice(0, 8), 16) || 1;
}

/** Writes the options of Stryker for one run and returns the path of the file. */
function writeConfig(
  [name, area]: readonly [string, Area],
  specific: Readonly<Record<string, unknown>>,
): string {
  const path = join(cache, `${name}.config.json`);
  const config = {
    testRunner: 'vitest',
    vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
    plugins: [
      '@stryker-mutator/vitest-runner',
      './test/mutation/reporter.ts',
      './test/mutation/type-checker.ts',
    ],
    checkers: area.checksTypes === true ? ['types'] : [],
    coverageAnalysis: 'perTest',
    ignoreStatic: true,
    concurrency: 2,
    timeoutMS: 5_000,
    tempDirName: `${cache}/sandbox`,
    mutator: { excludedMutations: area.excludedMutations ?? [] },
    clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
    ignorePatterns: ['.cache', 'dist', 'ui', 'deploy', 'docs', 'examples', 'bench', 'proto'],
    ...specific,
  };
  mkdirSync(join(root, cache), { recursive: true });
  writeFileSync(join(root, path), JSON.stringify(config, undefined, 2));
  return path;
}

/**
 * Ends Stryker and its test runners after the time, but not before a few mutants were tested: on a loaded machine the run
 * without mutants may already take longer. Resolves with the exit code; undefined after an early end.
 */
function runStryker(
  area: string,
  run: { readonly config: string; readonly results: string; readonly seconds?: number },
): Promise<number | null | undefined> {
  const program = join(root, 'node_modules/@stryker-mutator/core/bin/stryker.js');
  const child = spawn(process.execPath, [program, 'run', run.config], {
    cwd: root,
    stdio: 'inherit',
    // Its own process group, so that the test runners end with it.
    detached: true,
    env: { ...process.env, MUTATION_AREA: area, MUTATION_RESULTS: run.results },
  });
  return new Promise((resolve) => {
    let wasEnded = false;
    const endGroup = () => {
      wasEnded = true;
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    };
    const endWhenTested = () => {
      if (countTested(readResults(run.results)) >= MIN_TESTED) endGroup();
      else timer = setTimeout(endWhenTested, 1_000);
    };
    let timer =
      run.seconds === undefined ? undefined : setTimeout(endWhenTested, run.seconds * 1_000);
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, endGroup);
    child.on('close', (code) => {
      clearTimeout(timer);
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, endGroup);
      resolve(wasEnded ? undefined : code);
    });
  });
}

async function runWhole(name: string, area: Area): Promise<boolean> {
  const config = writeConfig([name, area], {
    mutate: [...area.mutate, ...NEVER_MUTATED.map((pattern) => `!${pattern}`)],
    ...(options.only !== undefined && { mutate: options.only }),
    incremental: options.only === undefined,
    incrementalFile: `${cache}/${name}.json`,
    reporters: ['clear-text', 'json', 'progress-append-only'],
    jsonReporter: { fileName: `${cache}/${name}-report.json` },
    thresholds: { high: 90, low: THRESHOLD, break: THRESHOLD },
  });
  return (await runStryker(name, { config, results: '/dev/null' })) === 0;
}

interface SampleOptions {
  readonly seed: number;
  readonly seconds: number;
}

async function runSample(
  [name, area]: readonly [string, Area],
  { seed, seconds }: SampleOptions,
): Promise<boolean> {
  const files = globSync([...area.mutate], { cwd: root })
    .filter((path) => !NEVER_MUTATED.some((pattern) => matchesGlob(path, pattern)))
    .sort()
    .map((path) => ({ path, lines: readFileSync(join(root, path), 'utf8').split('\n').length }));
  const mutate = drawRanges(files, { seed, count: RANGES_PER_AREA });
  console.log(`mutation: ${name}, seed ${seed}, at most ${Math.round(seconds)} s`);
  for (const range of mutate) console.log(`  ${range}`);
  const results = join(root, cache, `${name}-sample.jsonl`);
  const config = writeConfig([`${name}-sample`, area], { mutate, reporters: ['lines'] });
  rmSync(results, { force: true });
  const code = await runStryker(name, { config, results, seconds });
  const tested = readResults(results);
  const isComplete = code === 0;
  const score = scoreSample(tested, isComplete);
  for (const mutant of tested.filter(({ status }) => UNDETECTED.includes(status))) {
    console.log(`  ${mutant.status}: ${formatMutant(mutant)}`);
  }
  console.log(
    `mutation: ${name}: ${score.detected} of ${score.valid} mutants detected` +
      `${isComplete ? '' : ' before the run ended early'}; ${score.isSufficient ? 'sufficient' : `below ${THRESHOLD} %`}` +
      ` (repeat: npm run mutation -- ${name} --sample --seed ${seed})`,
  );
  return score.isSufficient && (isComplete || code === undefined);
}

function readResults(path: string): readonly TestedMutant[] {
  if (!existsSync(path)) return [];
  // After the last line break may be half of a line.
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as TestedMutant);
}

function formatMutant({ fileName, location, mutatorName, replacement }: TestedMutant): string {
  const path = fileName.slice(fileName.lastIndexOf('/src/') + 1);
  const { line, column } = location.start;
  return `${path}:${line}:${column} ${mutatorName}: ${(replacement ?? '').slice(0, 80)}`;
}

async function runAreas(): Promise<readonly boolean[]> {
  const areas = selectAreas();
  const seed = options.seed === undefined ? commitSeed() : Number(options.seed);
  const endsAt = performance.now() + Number(options.seconds) * 1_000;
  const results: boolean[] = [];
  for (const [at, [name, area]] of areas.entries()) {
    rmSync(join(root, cache, 'sandbox'), { recursive: true, force: true });
    // Time that an area does not use is left for the others.
    const seconds = Math.max(0, endsAt - performance.now()) / 1_000 / (areas.length - at);
    results.push(
      options.sample
        ? await runSample([name, area], { seed, seconds })
        : await runWhole(name, area),
    );
  }
  return results;
}

const results = await runAreas();
const passed = results.filter(Boolean).length;
const counts = { numPassedTests: passed, numFailedTests: results.length - passed };
mkdirSync(join(root, '.test-results'), { recursive: true });
writeFileSync(join(root, '.test-results', 'mutation.json'), JSON.stringify(counts));
process.exitCode = passed === results.length ? 0 : 1;
