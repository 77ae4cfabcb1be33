// SPDX-License-Identifier: Apache-2.0
import { Cancelled } from '../ports/errors.ts';

/** For work shared by several callers: an abort rejects only the caller's own promise, the work continues. */
export function rejectOnAbort<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = () =>
      reject(
        new Cancelled('CANCELLED', 'the caller aborted the call', {
          facts: { requestSent: false },
        }),
      );
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
