// SPDX-License-Identifier: Apache-2.0
// Runs checks concurrently. One that does not end is a failure of its own and delays no other.
import type { Clock } from '../ports/clock.ts';
import { type Check, type CheckResult, failure, failureOf, type Outcome } from './check.ts';

/** Longer than a host waits for another host that does not answer, which the check then reports. */
export const CHECK_DEADLINE_MS = 40_000;

export interface CheckProgress {
  readonly ended: number;
  /** Known so far: hosts become known when their region has been read. */
  readonly known: number;
}

interface RunOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onProgress?: ((progress: CheckProgress) => void) | undefined;
}

/** Results are in the order of the sources. A source that needs a read resolves when that has ended. */
export async function runChecks(
  sources: readonly (readonly Check[] | Promise<readonly Check[]>)[],
  { clock, signal, onProgress }: RunOptions,
): Promise<readonly CheckResult[]> {
  let ended = 0;
  let known = 0;
  const results = await Promise.all(
    sources.map(async (source) => {
      const checks = await source;
      known += checks.length;
      return Promise.all(
        checks.map(async (check) => {
          const outcome = await runOne(check, clock, signal);
          ended += 1;
          onProgress?.({ ended, known });
          const { name, group, subject } = check;
          return { name, group, ...(subject !== undefined && { subject }), ...outcome };
        }),
      );
    }),
  );
  return results.flat();
}

async function runOne({ run }: Check, clock: Clock, outer: AbortSignal): Promise<Outcome> {
  const ending = new AbortController();
  const limit = new AbortController();
  const signal = AbortSignal.any([outer, limit.signal]);
  const late = clock.sleep(CHECK_DEADLINE_MS, { signal: ending.signal }).then(
    () => {
      limit.abort();
      return failure(
        `no answer within ${CHECK_DEADLINE_MS / 1_000} s`,
        'Check the network and the load of the server.',
      );
    },
    // The sleep was aborted, because the check has ended.
    () => failure('the check was cancelled', 'Run it again.'),
  );
  try {
    return await Promise.race([run(signal).catch(failureOf), late]);
  } finally {
    ending.abort();
  }
}
