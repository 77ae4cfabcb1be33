// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { runProgram } from './run-program.ts';

function shell(script: string, signal = new AbortController().signal) {
  return runProgram({ command: 'sh', args: ['-c', script], env: { OWN: 'mine' }, signal });
}

it('tells how a program ended and what it said', async () => {
  expect(await shell('echo "$OWN"; echo oh >&2; exit 3')).toEqual({
    code: 3,
    output: 'mine\n',
    errors: 'oh\n',
  });
});

it('gives it what this process has, and no input', async () => {
  expect(await shell('cat; test -n "$PATH" && echo path')).toMatchObject({ output: 'path\n' });
});

it('ends it with what it started', async () => {
  const stop = new AbortController();
  // Whoever holds its output keeps it from ending: all of them have to go.
  const run = shell('sleep 600 & echo begun; wait', stop.signal);
  stop.abort();
  expect(await run).toMatchObject({ code: null });
  expect(await shell('sleep 600', stop.signal)).toMatchObject({ code: null });
});

it('says when there is none', async () => {
  const signal = new AbortController().signal;
  const run = runProgram({ command: '/no/such/program', args: [], env: {}, signal });
  await expect(run).rejects.toMatchObject({ code: 'ENOENT' });
});
