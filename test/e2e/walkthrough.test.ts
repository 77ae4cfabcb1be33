// SPDX-License-Identifier: Apache-2.0
// Runs the commands of the section "Try it on one machine" of the Cluster Autoscaler guide, exactly as they are printed,
// in one shell with job control. Skipped without CLUSTER_AUTOSCALER.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readScript } from '../deploy/guide.ts';
import { buildKubernetesTools } from '../support/kubernetes-tools.ts';
import { root } from '../support/pvescaler.ts';
import { killOnExit } from './controlplane/reaper.ts';
import { BINARIES, HOW_TO_RUN } from './support/autoscaler/real-autoscaler.ts';

const LIMIT_MS = 400_000;
const BUILD_LIMIT_MS = 300_000;
/** Job control, as in an interactive shell: each background command is a process group of its own. */
const END_JOBS = `set -m\ntrap 'for job in $(jobs -p); do kill -- "-$job" || true; done; wait' EXIT TERM\n`;
const FOLDER = join(root, 'try');

const [binary = ''] = BINARIES;
if (binary === '') process.stderr.write(`the walkthrough is not tested: ${HOW_TO_RUN}\n`);

it.skipIf(binary === '')(
  'the walkthrough of the Cluster Autoscaler guide scales a pool to four machines and to zero',
  { timeout: LIMIT_MS + BUILD_LIMIT_MS },
  async ({ onTestFinished }) => {
    const tools = buildKubernetesTools('kubectl');
    rmSync(FOLDER, { recursive: true, force: true });
    onTestFinished(() => rmSync(FOLDER, { recursive: true, force: true }));
    const script = END_JOBS + readScript('Try it on one machine');
    const shell = spawn('bash', ['-e', '-c', script], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: LIMIT_MS,
      env: { ...process.env, PATH: `${tools}:${process.env['PATH']}`, CLUSTER_AUTOSCALER: binary },
    });
    killOnExit(shell);
    const output: string[] = [];
    for (const stream of [shell.stdout, shell.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => output.push(text));
    const [exitCode] = await once(shell, 'close');
    const text = output.join('');
    expect(exitCode, text + readLogs()).toBe(0);
    expect(text).toContain('deployment "filler" successfully rolled out');
    expect(text.match(/^small-\S+ +Ready .* small$/gm)).toHaveLength(4);
    expect(text.match(/^node\/small-\S+ condition met$/gm)).toHaveLength(4);
    expect(existsSync(FOLDER)).toBe(false);
  },
);

function readLogs(): string {
  return ['serve', 'cluster-autoscaler']
    .map((name) => join(FOLDER, `${name}.log`))
    .filter((path) => existsSync(path))
    .map((path) => `\n--- ${path}\n${readFileSync(path, 'utf8').split('\n').slice(-40).join('\n')}`)
    .join('');
}
