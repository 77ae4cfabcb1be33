// SPDX-License-Identifier: Apache-2.0
// The composition root of the thread that answers the Cluster Autoscaler. main.ts starts it.
import { readFile } from 'node:fs/promises';
import { answer } from './externalgrpc/thread/answer.ts';
import type { FaceOrder, FromFace, ToFace } from './externalgrpc/thread/messages.ts';
import { serializeError } from './ports/errors.ts';
import { openSqliteStore } from './store/index.ts';
import { openParentChannel, systemClock, systemRandom } from './system/index.ts';

/** The driver writes all the time; an order waits for it aside, while others are answered. */
const LOCK_WAIT_MS = 1;

const { input, channel } = openParentChannel<FaceOrder, FromFace, ToFace>();
const own = { clock: systemClock, random: systemRandom };
try {
  const store = await openSqliteStore({
    path: input.statePath,
    lockWaitMs: LOCK_WAIT_MS,
    ...own,
  });
  try {
    await answer({
      link: channel,
      order: input,
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
