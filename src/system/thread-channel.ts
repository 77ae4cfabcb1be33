// SPDX-License-Identifier: Apache-2.0
// Channels between threads of this process, over Node's worker threads.
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { Bug } from '../ports/errors.ts';
import type { ThreadChannel } from '../ports/thread-channel.ts';

/** A small young generation keeps each garbage collection short, so that the thread responds with low latency. */
const YOUNG_GENERATION_MIB = 24;

/** A file, or the text of a CommonJS program. */
export type ThreadProgram = URL | { readonly source: string };

/** Starts a thread that runs the program; it reads `input` through `openParentChannel`. */
export function startThread<Out, In>(
  program: ThreadProgram,
  { name, input }: { readonly name: string; readonly input: unknown },
): ThreadChannel<Out, In> {
  const isFile = program instanceof URL;
  const worker = new Worker(isFile ? program : program.source, {
    eval: !isFile,
    name,
    workerData: input,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MIB },
  });
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  let isClosing = false;
  worker.once('error', failure.reject);
  worker.once('exit', (code) => {
    if (isClosing) return;
    failure.reject(new Bug('BUG', `the thread ${name} exited unexpectedly with code ${code}`));
  });
  return {
    send(message) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage(message);
    },
    onMessage: (listener) => void worker.on('message', listener),
    failed: failure.promise,
    async close() {
      isClosing = true;
      await worker.terminate();
    },
  };
}

interface ThreadContext<Input, Out, In> {
  readonly input: Input;
  readonly channel: ThreadChannel<Out, In>;
}

/** Call it in a started thread: returns its input and the channel to its parent. */
export function openParentChannel<Input, Out, In>(): ThreadContext<Input, Out, In> {
  const port = parentPort;
  if (port === null) throw new Bug('BUG', 'this program must run as a worker thread');
  return {
    input: workerData as Input,
    channel: {
      send(message) {
        port.postMessage(message);
      },
      onMessage: (listener) => void port.on('message', listener),
      // A thread ends with its parent, so this end never sees a failure.
      failed: new Promise(() => undefined),
      close: () => Promise.resolve(port.close()),
    },
  };
}
