// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { runProgram } from './run-program.ts';

function shell(script: string, signal = new AbortController().signal) {
  return runProgram({ command: 'sh', args: ['-c', script], env: { OWN: 'mine' }, signal });
}

it('returns the exit code, stdout and stderr', async () => {
  expect(await shell('echo "$OWN"; echo oh >&2; exit 3')).toEqual({
    code: 3,
    output: 'mine\n',
    errors: 'oh\n',
  });
});

it('passes on the environment of this process and no stdin', async () => {
  expect(await shell('cat; test -n "$PATH" && echo path')).toMatchObject({ output: 'path\n' });
});

it('kills the program and its child processes on abort', async () => {
  const stop = new AbortController();
  // A child process that holds stdout open would keep the run from ending.
  const run = shell('sleep 600 & echo begun; wait', stop.signal);
  stop.abort();
  expect(await run).toMatchObject({ code: null });
  expect(await shell('sleep 600', stop.signal)).toMatchObject({ code: null });
});

it('rejects with ENOENT when the program does not exist', async () => {
  const signal = new AbortController().signal;
  const run = runProgram({ command: '/no/such/program', args: [], env: {}, signal });
  await expect(run).rejects.toMatchObject({ code: 'ENOENT' });
});
