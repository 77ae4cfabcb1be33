// SPDX-License-Identifier: Apache-2.0
// The hardest tests of the fleet: the built program as real processes that die at every recorded instant, on a
// simulated site behind real sockets.
// Usage: npm run test:fleet -- [--source image|full|linked|netboot] [--seed S] [--only TEXT] [--all]
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { crashMatrix } from './crash-matrix.ts';
import { SOURCE_NAMES } from './sources.ts';
import { Tally } from './tally.ts';

const root = join(import.meta.dirname, '..', '..');
const SAMPLE = { create: 42, delete: 18 };
const EVERYTHING = { create: Infinity, delete: Infinity };

const { values: options } = parseArgs({
  options: {
    source: { type: 'string' },
    seed: { type: 'string' },
    only: { type: 'string' },
    all: { type: 'boolean' },
  },
});

function say(text: string): void {
  console.log(`fleet: ${text}`);
}

function build(): void {
  const { status } = spawnSync(process.execPath, [join(root, 'scripts/build.mjs')], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the program did not build');
}

async function main(): Promise<void> {
  const seed = Number(options.seed ?? Math.floor(Math.random() * 2 ** 31));
  const sources = SOURCE_NAMES.filter((name) => [undefined, name].includes(options.source));
  if (!Number.isInteger(seed) || sources.length === 0) throw new Error('no such seed or source');
  const started = Date.now();
  say(`seed ${seed} (repeat: --seed ${seed})`);
  build();
  const tally = new Tally(say);
  const isWhole = options.all === true || options.only !== undefined;
  for (const source of sources) {
    const most = isWhole ? EVERYTHING : SAMPLE;
    await crashMatrix(source, { seed, only: options.only, most, tally, say });
  }
  const seconds = Math.round((Date.now() - started) / 1_000);
  say(`${tally.passed} passed, ${tally.failed} failed, after ${seconds} s`);
  mkdirSync(join(root, '.test-results'), { recursive: true });
  writeFileSync(
    join(root, '.test-results', 'fleet.json'),
    `${JSON.stringify({ numPassedTests: tally.passed, numFailedTests: tally.failed })}\n`,
  );
  // None at all is no success either.
  process.exitCode = tally.failed > 0 || tally.passed === 0 ? 1 : 0;
}

await main();
