// SPDX-License-Identifier: Apache-2.0
// Runs the test tiers one after the other and adds up their results in .test-results/. Plain JavaScript, because it
// starts before anything is installed.
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const results = join(root, '.test-results');

const json = (name) => [
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=.test-results/${name}.json`,
];

const TIERS = [
  { name: 'check', command: ['npm', 'run', '--silent', 'check'] },
  { name: 'test', command: ['npm', 'test', '--silent', '--', ...json('test')] },
  {
    // The same cases in every run, here and below; fresh ones without --seed.
    name: 'parity',
    command: ['npm', 'run', '--silent', 'test:parity', '--', '--seed', '1'],
  },
  { name: 'interop-go', command: ['npm', 'run', '--silent', 'test:interop-go'] },
  { name: 'fleet', command: ['npm', 'run', '--silent', 'test:fleet'] },
  {
    name: 'fleet-matrix',
    command: ['npm', 'run', '--silent', 'test:fleet-matrix', '--', '--seed', '1'],
  },
  { name: 'ui', command: ['npm', 'run', '--silent', 'test:ui'] },
  { name: 'e2e', command: ['env', 'E2E_SAMPLE=1', 'npm', 'run', '--silent', 'test:e2e'] },
  {
    name: 'mutation',
    command: [
      'npm',
      'run',
      '--silent',
      'mutation',
      '--',
      '--sample',
      // The tests must detect what this commit changes, not what a new sample happens to contain.
      '--seed',
      '1',
      'scheduling',
      'placement',
      'proxmox',
      'fleet',
    ],
  },
  {
    name: 'soak',
    command: ['npm', 'run', '--silent', 'soak', '--', '--seeds', '80', '--seed', '1'],
  },
  {
    name: 'bootstrap',
    command: ['npm', 'run', '--silent', 'test:bootstrap', '--', '--seed', '1'],
  },
  { name: 'oracle', command: ['npm', 'run', '--silent', 'test:oracle', '--', '--seed', '1'] },
  { name: 'fresh-clone', command: ['npm', 'run', '--silent', 'test:fresh-clone'] },
];

function readResults(name) {
  try {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(
      readFileSync(join(results, `${name}.json`), 'utf8'),
    );
    return {
      passed: numPassedTests,
      failed: numFailedTests,
      failures: (testResults ?? []).flatMap(readFailures),
    };
  } catch {
    return { passed: 0, failed: 0, failures: [] };
  }
}

/** The failed tests of one file with the first lines of each cause; Vitest's JSON report. */
function readFailures({ name: file, message, assertionResults }) {
  const failed = assertionResults.filter(({ status }) => status === 'failed');
  const path = relative(root, file);
  if (failed.length === 0 && message) return [{ test: path, cause: message }];
  return failed.map(({ fullName, failureMessages }) => ({
    test: `${path}: ${fullName}`,
    cause: failureMessages.join('\n'),
  }));
}

function runTier({ name, command: [program, ...args] }) {
  console.log(`\n=== ${name}: ${[program, ...args].join(' ')}`);
  const started = Date.now();
  // The same cases of properties in every run.
  const env = { ...process.env, PROPERTY_SEED: '1' };
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit', env });
  const { passed, failed, failures } = readResults(name);
  // A tier that fails without a failed test, or succeeds without any test, counts as one failure.
  const hasNoResult = (status !== 0 && failed === 0) || (status === 0 && passed === 0);
  return {
    name,
    passed,
    failed: failed + (hasNoResult ? 1 : 0),
    failures,
    minutes: (Date.now() - started) / 60_000,
  };
}

rmSync(results, { recursive: true, force: true });
const reports = TIERS.map(runTier);
console.log('\nminutes  passed  failed  tier');
for (const { name, passed, failed, minutes } of reports) {
  console.log(
    `${minutes.toFixed(1).padStart(7)}  ${String(passed).padStart(6)}  ${String(failed).padStart(6)}  ${name}`,
  );
}
// At the end too, because the tiers that ran in between print thousands of lines.
for (const { name, failures } of reports) {
  for (const { test, cause } of failures) {
    const lines = cause.split('\n').slice(0, 12);
    console.log([`\nfailed: ${name}: ${test}`, ...lines].join('\n    '));
  }
}
const total = (key) => reports.reduce((sum, report) => sum + report[key], 0);
console.log(`${total('minutes').toFixed(1).padStart(7)}  total`);
console.log(`${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('failed') === 0 ? 0 : 1;
