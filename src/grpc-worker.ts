// SPDX-License-Identifier: Apache-2.0
// The composition root of the gRPC worker thread, which serves the Cluster Autoscaler. main.ts starts it.
import { readFile } from 'node:fs/promises';
import type {
  GrpcServerOptions,
  MessageFromWorker,
  MessageToWorker,
} from './externalgrpc/worker/messages.ts';
import { runGrpcWorker } from './externalgrpc/worker/run-worker.ts';
import { plainError } from './ports/errors.ts';
import { openSqliteStore } from './store/index.ts';
import { linkToParent, systemClock, systemRandom } from './system/index.ts';

/** The driver holds the write lock often. A short wait keeps this thread free for other calls; the store retries. */
const LOCK_WAIT_MS = 1;

const { order: options, link } = linkToParent<
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
    await runGrpcWorker({ link, options, store, ...own, read: (path) => readFile(path, 'utf8') });
  } finally {
    await store.close();
  }
  link.send({ kind: 'closed' });
} catch (error) {
  link.send({ kind: 'failed', error: plainError(error) });
}
await link.close();
