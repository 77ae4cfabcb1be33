// SPDX-License-Identifier: Apache-2.0
// The composition root of the gRPC worker thread, which serves the Cluster Autoscaler. main.ts starts it.
import { readFile } from 'node:fs/promises';
import type {
  GrpcServerOptions,
  MessageFromWorker,
  MessageToWorker,
} from './externalgrpc/worker/messages.ts';
import { runGrpcWorker } from './externalgrpc/worker/run-worker.ts';
import { serializeError } from './ports/errors.ts';
import { openSqliteStore } from './store/index.ts';
import { openParentChannel, systemClock, systemRandom } from './system/index.ts';

/** The driver holds the write lock often. A short wait keeps this thread free for other calls; the store retries. */
const LOCK_WAIT_MS = 1;

const own = { clock: systemClock, random: systemRandom };

async function main(): Promise<void> {
  const { input: options, channel } = openParentChannel<
    GrpcServerOptions,
    MessageFromWorker,
    MessageToWorker
  >();
  try {
    const { statePath: path } = options;
    const store = await openSqliteStore({ path, lockWaitMs: LOCK_WAIT_MS, ...own });
    const read = (file: string) => readFile(file, 'utf8');
    try {
      await runGrpcWorker({ channel, options, store, read, ...own });
    } finally {
      await store.close();
    }
    channel.send({ kind: 'closed' });
  } catch (error) {
    channel.send({ kind: 'failed', error: serializeError(error) });
  }
  await channel.close();
}

// Not a top-level await, which the CommonJS bundle of a single-file binary cannot contain.
void main();
