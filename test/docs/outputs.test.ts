// SPDX-License-Identifier: Apache-2.0
// Runs the `console` blocks of the documentation: each line that begins with `$ ` is a command, and the lines below it are
// exactly what it prints.
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { aFolder, COMMAND_TIMEOUT_MS, commandLine, root } from '../support/pvescaler.ts';
import { DOCUMENTS } from './documents.ts';

const steps = DOCUMENTS.flatMap(({ blocks }) => blocks)
  .filter(({ language }) => language === 'console')
  .flatMap(({ at, text }) =>
    text
      .split(/^\$ /m)
      .slice(1)
      .map((step) => {
        const [command = '', ...output] = step.split('\n');
        return { at, command, output: output.join('\n') };
      }),
  );

function run(command: string): string {
  const [program, args] = commandLine([]);
  const { stdout } = spawnSync(
    'bash',
    ['-c', `npx() { shift; "$PROGRAM" $ARGS "$@"; }; ${command}`],
    {
      cwd: root,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: aFolder(), PROGRAM: program, ARGS: args.join(' ') },
      timeout: COMMAND_TIMEOUT_MS,
    },
  );
  return stdout;
}

describe('outputs in the documentation', () => {
  it.each(steps)('$at: $command', ({ command, output }) => {
    expect(run(command).trimEnd()).toBe(output.trimEnd());
  });

  it('exist', () => {
    expect(steps.length).toBeGreaterThan(3);
  });
});
