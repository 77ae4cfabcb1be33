// SPDX-License-Identifier: Apache-2.0
// The exhaustive tests of the fleet. Crashes: the built program as real processes, killed at recorded points, on a
// simulated site behind real sockets. Faults and external changes: in one process, on virtual time.
// Usage: npm run test:fleet-matrix -- [--source image|full|linked|netboot] [--seed S] [--only TEXT] [--machines 1|2|3] [--all]
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runCrashMatrix } from './crash-matrix.ts';
import { runExternalChangeMatrix } from './external-change-matrix.ts';
import { runFaultMatrix } from './fault-matrix.ts';
import { SOURCE_NAMES } from './sources.ts';
import { Tally } from './tally.ts';

const root = join(import.meta.dirname, '..', '..');

/** Sample per source, which takes minutes instead of hours; the seed selects the cases. */
const SAMPLE = {
  create: 18,
  delete: 10,
  recoveries: { crashes: 3, instants: 2 },
  /** For the first source. */
  inKubernetes: { create: 6, delete: 3, recoveries: { crashes: 1, instants: 1 } },
  faults: 90,
  externalChanges: 50,
};
const EVERYTHING = {
  create: Infinity,
  delete: Infinity,
  recoveries: { crashes: Infinity, instants: 3 },
  inKubernetes: {
    create: Infinity,
    delete: Infinity,
    recoveries: { crashes: Infinity, instants: 3 },
  },
  faults: Infinity,
  externalChanges: Infinity,
};

/** Names of the sources in the in-process tests. */
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

function print(text: string): void {
  console.log(`fleet-matrix: ${text}`);
}

function build(): void {
  const { status } = spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('scripts/build.mjs failed; its output is above');
}

async function main(): Promise<void> {
  const seed = Number(options.seed ?? Math.floor(Math.random() * 2 ** 31));
  const machines = Number(options.machines ?? 1);
  const sources = SOURCE_NAMES.filter((name) => (options.source ?? name) === name);
  if (!Number.isInteger(seed) || sources.length === 0)
    throw new Error(`--seed must be a whole number and --source one of ${SOURCE_NAMES.join(', ')}`);
  const started = Date.now();
  print(`seed ${seed} (repeat with: --seed ${seed}; one test alone: --only NAME)`);
  build();
  const tally = new Tally(print);
  const isWhole = options.all === true || options.only !== undefined;
  const { faults, externalChanges, inKubernetes, ...crashes } = isWhole ? EVERYTHING : SAMPLE;
  const common = { seed, only: options.only, tally, print };
  for (const source of sources) {
    await runExternalChangeMatrix(IN_PROCESS[source], { ...common, limit: externalChanges });
    await runFaultMatrix(IN_PROCESS[source], { ...common, limit: faults });
    await runCrashMatrix(source, { ...common, machines, records: 'sqlite', limit: crashes });
  }
  for (const source of sources.slice(0, 1)) {
    const records = 'kubernetes';
    await runCrashMatrix(source, { ...common, machines, records, limit: inKubernetes });
  }
  const seconds = Math.round((Date.now() - started) / 1_000);
  print(`${tally.passed} passed, ${tally.failed} failed, after ${seconds} s`);
  mkdirSync(join(root, '.test-results'), { recursive: true });
  writeFileSync(
    join(root, '.test-results', 'fleet-matrix.json'),
    `${JSON.stringify({ numPassedTests: tally.passed, numFailedTests: tally.failed })}\n`,
  );
  // A run without any test is a failure.
  process.exitCode = tally.failed > 0 || tally.passed === 0 ? 1 : 0;
}

await main();
