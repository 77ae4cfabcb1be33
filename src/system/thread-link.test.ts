// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { startThread } from './thread-link.ts';

function program(text: string): URL {
  return new URL(`data:text/javascript,${encodeURIComponent(text)}`);
}

const ECHO = `
import { parentPort, workerData } from 'node:worker_threads';
parentPort.on('message', (message) => parentPort.postMessage({ ...workerData, message }));
`;

it('carries an order and messages both ways, and ends the thread on close', async () => {
  const link = startThread<string, unknown>(program(ECHO), { name: 'echo', order: { by: 'me' } });
  const heard = new Promise((resolve) => link.onMessage(resolve));
  link.send('hello');
  expect(await heard).toEqual({ by: 'me', message: 'hello' });
  await link.close();
  const isBroken = await Promise.race([
    link.broken.catch(() => true),
    new Promise((resolve) => setImmediate(() => resolve(false))),
  ]);
  expect(isBroken).toBe(false);
});

it('is broken when the thread dies of an error', async () => {
  const link = startThread(program('throw new Error("no way")'), { name: 'x', order: undefined });
  await expect(link.broken).rejects.toThrow('no way');
});

it('is broken when the thread ends without having been asked to', async () => {
  const link = startThread(program('process.exit(3)'), { name: 'short', order: undefined });
  await expect(link.broken).rejects.toThrow(/short has ended by itself, with code 3/);
});
