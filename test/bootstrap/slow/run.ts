// SPDX-License-Identifier: Apache-2.0
// Checks the first-boot documents with independent programs: Debian's cloud-init for the documents; isoinfo,
// xorriso and pycdlib for the ISO; PyYAML for the YAML; dash and OpenSSL for the scripts; systemd for the units. Usage: npm
// run test:bootstrap -- [--seed S]. The first run needs root on Debian or Ubuntu, to install them.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkAgentToken } from './agent-token.ts';
import { checkDocuments } from './documents.ts';
import { checkIsos } from './isos.ts';
import { checkRandomYaml } from './random-yaml.ts';
import { SAMPLES } from './samples.ts';
import { Tally } from './tally.ts';
import { CannotRun, ensureTools } from './tools.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const { values: options } = parseArgs({ options: { seed: { type: 'string' } } });

function say(text: string): void {
  console.log(`bootstrap: ${text}`);
}

function main(): void {
  const pycdlib = ensureTools(join(root, '.cache', 'bootstrap'), say);
  const folder = mkdtempSync(join(tmpdir(), 'pvescaler-bootstrap-'));
  const tally = new Tally(say);
  try {
    for (const [name, input] of Object.entries(SAMPLES)) {
      checkDocuments({ name, input, folder, tally });
    }
    say(`${Object.keys(SAMPLES).length} seeds read by cloud-init, PyYAML, dash and systemd`);
    say(`${checkAgentToken(folder, tally)} CA bundles hashed by the script of the agent's token`);
    const seed = Number(options.seed ?? Math.floor(Math.random() * 2 ** 31));
    say(`${checkRandomYaml(folder, tally, seed)} random values of seed ${seed} read by PyYAML`);
    const isos = checkIsos({ samples: SAMPLES, folder, tally, pycdlib });
    say(`${isos} ISOs read by isoinfo, xorriso and pycdlib`);
  } finally {
    rmSync(folder, { recursive: true });
  }
  say(`${tally.passed} checks passed, ${tally.failed} failed`);
  mkdirSync(join(root, '.test-results'), { recursive: true });
  writeFileSync(
    join(root, '.test-results', 'bootstrap.json'),
    `${JSON.stringify({ numPassedTests: tally.passed, numFailedTests: tally.failed })}\n`,
  );
  // Zero checks are a failure too.
  if (tally.failed > 0 || tally.passed === 0) process.exitCode = 1;
}

try {
  main();
} catch (error) {
  if (!(error instanceof CannotRun)) throw error;
  console.error(`bootstrap: ${error.message}`);
  process.exitCode = 1;
}
