// SPDX-License-Identifier: Apache-2.0
// Lines between threads of this process, over Node's workers.
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { Bug } from '../ports/errors.ts';
import type { Link } from '../ports/link.ts';

/**
 * Who gets a thread of its own has others waiting for it: each collection of young garbage copies what survives it, so
 * many short ones are better than few long ones.
 */
const YOUNG_GENERATION_MIB = 24;

/** Starts the thread whose program is at that address. It finds its order by `linkToParent`. */
export function startThread<Out, In>(
  program: URL,
  { name, order }: { readonly name: string; readonly order: unknown },
): Link<Out, In> {
  const worker = new Worker(program, {
    name,
    workerData: order,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MIB },
  });
  const broken = Promise.withResolvers<never>();
  broken.promise.catch(() => undefined);
  let isClosing = false;
  worker.once('error', broken.reject);
  worker.once('exit', (code) => {
    if (isClosing) return;
    broken.reject(new Bug('BUG', `the thread ${name} has ended by itself, with code ${code}`));
  });
  return {
    send(message) {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      worker.postMessage(message);
    },
    onMessage: (listener) => void worker.on('message', listener),
    broken: broken.promise,
    async close() {
      isClosing = true;
      await worker.terminate();
    },
  };
}

export interface ThreadStart<Order, Out, In> {
  readonly order: Order;
  readonly link: Link<Out, In>;
}

/** In a thread: its order, and the line to whoever started it. */
export function linkToParent<Order, Out, In>(): ThreadStart<Order, Out, In> {
  const port = parentPort;
  if (port === null) throw new Bug('BUG', 'this program is to be run as a thread');
  return {
    order: workerData as Order,
    link: {
      send(message) {
        port.postMessage(message);
      },
      onMessage: (listener) => void port.on('message', listener),
      // Threads end with their parent.
      broken: new Promise(() => undefined),
      close: () => Promise.resolve(port.close()),
    },
  };
}
