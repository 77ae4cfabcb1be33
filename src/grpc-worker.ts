// SPDX-License-Identifier: Apache-2.0
// The composition root of the gRPC worker thread, which serves the Cluster Autoscaler. main.ts starts it.
import { readFile } from 'node:fs/promises';
import type {
  GrpcServerOptions,
  MessageFromWorker,
  MessageToWorker,
  WorkerState,
} from './externalgrpc/worker/messages.ts';
import { runGrpcWorker } from './externalgrpc/worker/run-worker.ts';
import { openStoreInKubernetes } from './kubernetes-connection.ts';
import { InvalidConfig, serializeError } from './ports/errors.ts';
import type { Store } from './ports/store.ts';
import { openSqliteStore } from './store/index.ts';
import { openParentChannel, systemClock, systemRandom } from './system/index.ts';

/** The driver holds the write lock often. A short wait keeps this thread free for other calls; the store retries. */
const LOCK_WAIT_MS = 1;

const own = { clock: systemClock, random: systemRandom };

async function openStore({ path, kubernetes }: WorkerState): Promise<Store> {
  const local = await openSqliteStore({ path, lockWaitMs: LOCK_WAIT_MS, ...own });
  if (kubernetes === undefined) return local;
  try {
    const { namespace } = kubernetes;
    const store = await openStoreInKubernetes(kubernetes, { namespace, local });
    if (store !== undefined) return store;
    throw new InvalidConfig('CONFIG_INVALID', 'the gRPC worker thread cannot access Kubernetes');
  } catch (error) {
    await local.close();
    throw error;
  }
}

async function main(): Promise<void> {
  const { input: options, channel } = openParentChannel<
    GrpcServerOptions,
    MessageFromWorker,
    MessageToWorker
  >();
  try {
    const store = await openStore(options.state);
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
