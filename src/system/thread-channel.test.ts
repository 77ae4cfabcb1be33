// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { startThread } from './thread-channel.ts';

function program(text: string): URL {
  return new URL(`data:text/javascript,${encodeURIComponent(text)}`);
}

const ECHO = `
import { parentPort, workerData } from 'node:worker_threads';
parentPort.on('message', (message) => parentPort.postMessage({ ...workerData, message }));
`;

it('passes input and messages in both directions, and terminates the thread on close', async () => {
  const channel = startThread<string, unknown>(program(ECHO), {
    name: 'echo',
    input: { by: 'me' },
  });
  const received = new Promise((resolve) => channel.onMessage(resolve));
  channel.send('hello');
  expect(await received).toEqual({ by: 'me', message: 'hello' });
  await channel.close();
  const hasFailed = await Promise.race([
    channel.failed.catch(() => true),
    new Promise((resolve) => setImmediate(() => resolve(false))),
  ]);
  expect(hasFailed).toBe(false);
});

it('reports a failure when the thread throws', async () => {
  const channel = startThread(program('throw new Error("thread error")'), {
    name: 'x',
    input: undefined,
  });
  await expect(channel.failed).rejects.toThrow('thread error');
});

it('reports a failure when the thread exits unexpectedly', async () => {
  const channel = startThread(program('process.exit(3)'), { name: 'short', input: undefined });
  await expect(channel.failed).rejects.toThrow(/thread short exited unexpectedly with code 3/);
});
