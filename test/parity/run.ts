// SPDX-License-Identifier: Apache-2.0
// Compares the model with Kubernetes' own code: builds the reference program (Go), then evaluates the same
// inputs with both.
// Usage: npm run test:parity -- [--seed S] [--cases N]

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildGoProgram } from '../support/go-program.ts';

const root = join(import.meta.dirname, '..', '..');
const referenceSource = join(import.meta.dirname, 'reference');
const referenceProgram = join(root, '.cache', 'parity', 'reference');

const { values: options } = parseArgs({
  options: { seed: { type: 'string' }, cases: { type: 'string' } },
});

function fail(message: string): never {
  console.error(`parity: ${message}`);
  process.exit(1);
}

function wholeNumber(name: string, text: string): number {
  if (!/^-?\d+$/.test(text)) fail(`--${name} must be a whole number, not '${text}'`);
  return Number(text);
}

/** From Kubernetes' own packages. */
function buildReference(): void {
  const log = (text: string) => console.log(`parity: ${text}`);
  try {
    buildGoProgram({ source: referenceSource, program: referenceProgram, log });
  } catch (error) {
    fail((error as Error).message);
  }
}

function compare(seed: number, cases: number): number {
  console.log(`parity: ${cases} cases with seed ${seed} (repeat: --seed ${seed} --cases ${cases})`);
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const config = join(import.meta.dirname, 'vitest.config.ts');
  const run = spawnSync(process.execPath, [vitest, 'run', '--config', config], {
    cwd: root,
    stdio: 'inherit',
    env: {
      ...process.env,
      PARITY_REFERENCE: referenceProgram,
      PARITY_SEED: `${seed}`,
      PARITY_CASES: `${cases}`,
    },
  });
  return run.status ?? 1;
}

const seed = wholeNumber('seed', options.seed ?? `${Math.floor(Math.random() * 2 ** 31)}`);
const cases = wholeNumber('cases', options.cases ?? '150000');
const started = Date.now();
buildReference();
const status = compare(seed, cases);
console.log(
  `parity: ${status === 0 ? 'passed' : 'FAILED'} after ${Math.round((Date.now() - started) / 1000)} s`,
);
process.exitCode = status;
