// SPDX-License-Identifier: Apache-2.0
import { expect } from 'vitest';
import type { Clock } from '../clock.ts';
import type { ErrorCode } from '../error-codes.ts';
import { PvescalerError } from '../errors.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import type { Store } from '../store.ts';

export interface StoreUnderTest {
  readonly store: Store;
  /** The same data opened once more, as another process would, whether or not the first is closed. */
  readonly reopen: () => Promise<Store>;
  readonly cleanup: () => Promise<void>;
}

/** A new, empty store each time. */
export type OpenStore = (clock: Clock) => Promise<StoreUnderTest>;

export interface Scene extends StoreUnderTest {
  readonly clock: VirtualClock;
}

/** Runs a test on a store of its own and cleans up after it, however it ends. */
export function onStore(open: OpenStore, test: (scene: Scene) => Promise<void>) {
  return async (): Promise<void> => {
    const clock = new VirtualClock();
    const under = await open(clock);
    try {
      await test({ ...under, clock });
    } finally {
      await under.cleanup();
    }
  };
}

/** The code of the product's error it rejects with; any other outcome fails the test. */
export async function codeOf(promise: Promise<unknown>): Promise<ErrorCode> {
  const outcome = await promise.then(
    (value) => new Error(`resolved with ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (outcome instanceof PvescalerError) return outcome.code;
  return expect.unreachable(`not one of our errors: ${String(outcome)}`);
}

/** How many of them resolved; the others' codes. */
export async function tally(
  promises: readonly Promise<unknown>[],
): Promise<{ readonly won: number; readonly codes: readonly ErrorCode[] }> {
  const settled = await Promise.allSettled(promises);
  const lost = settled.filter((one) => one.status === 'rejected');
  const codes = await Promise.all(lost.map(({ reason }) => codeOf(Promise.reject(reason))));
  return { won: settled.length - lost.length, codes };
}

export function aborted(): AbortSignal {
  return AbortSignal.abort();
}

/** For what must be there: its absence fails the test. */
export function present<T>(value: T | undefined): T {
  return value ?? expect.unreachable('it is not there');
}
