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

const { input: options, channel } = openParentChannel<
  GrpcServerOptions,
  MessageFromWorker,
  MessageToWorker
>();
const own = { clock: systemClock, random: systemRandom };
try {
  const store = await openSqliteStore({
    path: options.statePath,
    lockWaitMs: LOCK_WAIT_MS,
    ...own,
  });
  try {
    await runGrpcWorker({
      channel,
      options,
      store,
      ...own,
      read: (path) => readFile(path, 'utf8'),
    });
  } finally {
    await store.close();
  }
  channel.send({ kind: 'closed' });
} catch (error) {
  channel.send({ kind: 'failed', error: serializeError(error) });
}
await channel.close();
