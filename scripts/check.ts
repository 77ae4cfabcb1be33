// SPDX-License-Identifier: Apache-2.0
// `npm run check`: all static checks, in under two minutes. Every step runs, so that one call shows every problem.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findForbiddenText } from './forbidden-text.ts';
import { generatedFiles, staleFiles } from './generate.ts';
import { checkLayering } from './layering/check-layering.ts';

const root = join(import.meta.dirname, '..');

interface Step {
  readonly name: string;
  /** One text per problem; empty = passed. */
  run(): Promise<readonly string[]>;
}

function toolStep(name: string, command: readonly [string, ...string[]]): Step {
  return {
    name,
    async run() {
      const [program, ...args] = command;
      const result = spawnSync(program, args, { cwd: root, encoding: 'utf8' });
      if (result.error !== undefined)
        return [`${program} could not be started: ${result.error.message}`];
      return result.status === 0
        ? []
        : [`${result.stdout}${result.stderr}`.trim() || `exit code ${result.status}`];
    },
  };
}

const layering: Step = {
  name: 'layering (scripts/layering/directions.ts)',
  async run() {
    const { modules, violations } = await checkLayering(root);
    // Without TypeScript support the check would read no module and find no violation.
    return modules > 0
      ? violations
      : ['the layering check read no module; is the TypeScript package installed?'];
  },
};

const generated: Step = {
  name: 'generated files are up to date',
  async run() {
    const stale = await staleFiles(await generatedFiles());
    return stale.map((path) => `${path} is out of date; run npm run gen and commit the result`);
  },
};

const STEPS: readonly Step[] = [
  toolStep('format (npm run fix)', ['biome', 'check', '--error-on-warnings', '.']),
  toolStep('lint, type-aware', ['oxlint', '--type-aware', '--deny-warnings', '.']),
  toolStep('types', ['node', 'node_modules/typescript7/bin/tsc', '-p', '.']),
  toolStep('types of ui/', ['node', 'node_modules/typescript7/bin/tsc', '-p', 'ui']),
  layering,
  toolStep('dead code', ['knip', '--no-progress']),
  generated,
  { name: 'forbidden text (scripts/forbidden-text.ts)', run: () => findForbiddenText(root) },
];

async function main(): Promise<void> {
  const failed: string[] = [];
  for (const step of STEPS) {
    const started = performance.now();
    const problems = await step.run();
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(`${problems.length === 0 ? '✓' : '✗'} ${step.name} (${seconds} s)`);
    for (const problem of problems) console.log(problem.replace(/^/gm, '    '));
    if (problems.length > 0) failed.push(step.name);
  }
  mkdirSync(join(root, '.test-results'), { recursive: true });
  const counts = { numPassedTests: STEPS.length - failed.length, numFailedTests: failed.length };
  writeFileSync(join(root, '.test-results', 'check.json'), JSON.stringify(counts));
  console.log(
    failed.length === 0
      ? 'check: all steps passed'
      : `check: ${failed.length} of ${STEPS.length} steps failed`,
  );
  process.exitCode = failed.length === 0 ? 0 : 1;
}

await main();
