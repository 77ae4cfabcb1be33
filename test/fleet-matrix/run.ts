// SPDX-License-Identifier: Apache-2.0
// The hardest tests of the fleet. Crashes: the built program as real processes that die at recorded instants, on a
// simulated site behind real sockets. Faults and meddling: in one process, on virtual time.
// Usage: npm run test:fleet-matrix -- [--source image|full|linked|netboot] [--seed S] [--only TEXT] [--machines 1|2|3] [--all]
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { crashMatrix } from './crash-matrix.ts';
import { faultMatrix } from './fault-matrix.ts';
import { meddlingMatrix } from './meddling-matrix.ts';
import { SOURCE_NAMES } from './sources.ts';
import { Tally } from './tally.ts';

const root = join(import.meta.dirname, '..', '..');

/** Per source, in minutes rather than hours; the seed decides which, so that every run sees others. */
const SAMPLE = {
  create: 18,
  delete: 10,
  recoveries: { crashes: 3, instants: 2 },
  faults: 90,
  meddlings: 50,
};
const EVERYTHING = {
  create: Infinity,
  delete: Infinity,
  recoveries: { crashes: Infinity, instants: 3 },
  faults: Infinity,
  meddlings: Infinity,
};

/** The in-process tests have their own names. */
const IN_PROCESS = {
  image: 'image',
  full: 'full clone',
  linked: 'linked clone',
  netboot: 'netboot',
} as const;

const { values: options } = parseArgs({
  options: {
    source: { type: 'string' },
    seed: { type: 'string' },
    only: { type: 'string' },
    machines: { type: 'string' },
    all: { type: 'boolean' },
  },
});

function say(text: string): void {
  console.log(`fleet-matrix: ${text}`);
}

function build(): void {
  const { status } = spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the program did not build');
}

async function main(): Promise<void> {
  const seed = Number(options.seed ?? Math.floor(Math.random() * 2 ** 31));
  const machines = Number(options.machines ?? 1);
  const sources = SOURCE_NAMES.filter((name) => (options.source ?? name) === name);
  if (!Number.isInteger(seed) || sources.length === 0) throw new Error('no such seed or source');
  const started = Date.now();
  say(`seed ${seed} (repeat: --seed ${seed}, with --only and the name of a test for that one)`);
  build();
  const tally = new Tally(say);
  const isWhole = options.all === true || options.only !== undefined;
  const { faults, meddlings, ...crashes } = isWhole ? EVERYTHING : SAMPLE;
  const common = { seed, only: options.only, tally, say };
  for (const source of sources) {
    await meddlingMatrix(IN_PROCESS[source], { ...common, most: meddlings });
    await faultMatrix(IN_PROCESS[source], { ...common, most: faults });
    await crashMatrix(source, { ...common, machines, most: crashes });
  }
  const seconds = Math.round((Date.now() - started) / 1_000);
  say(`${tally.passed} passed, ${tally.failed} failed, after ${seconds} s`);
  mkdirSync(join(root, '.test-results'), { recursive: true });
  writeFileSync(
    join(root, '.test-results', 'fleet-matrix.json'),
    `${JSON.stringify({ numPassedTests: tally.passed, numFailedTests: tally.failed })}\n`,
  );
  // None at all is no success either.
  process.exitCode = tally.failed > 0 || tally.passed === 0 ? 1 : 0;
}

await main();
