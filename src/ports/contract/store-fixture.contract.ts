// SPDX-License-Identifier: Apache-2.0
import { expect } from 'vitest';
import type { Clock } from '../clock.ts';
import type { ErrorCode } from '../error-codes.ts';
import { PvescalerError } from '../errors.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';
import type { Store } from '../store.ts';

interface StoreUnderTest {
  readonly store: Store;
  /** Opens the same data as another process, whether or not the first store is closed. */
  readonly reopen: () => Promise<Store>;
  readonly cleanup: () => Promise<void>;
}

/** Opens a new, empty store. */
export type OpenStore = (clock: Clock) => Promise<StoreUnderTest>;

export interface StoreFixture extends StoreUnderTest {
  readonly clock: VirtualClock;
}

/** Runs a test on its own store and cleans up afterwards. */
export function withStore(open: OpenStore, test: (fixture: StoreFixture) => Promise<void>) {
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

/** Returns the code of the PvescalerError that the promise rejects with; any other outcome fails the test. */
export async function rejectionCode(promise: Promise<unknown>): Promise<ErrorCode> {
  const outcome = await promise.then(
    (value) => new Error(`resolved with ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (outcome instanceof PvescalerError) return outcome.code;
  return expect.unreachable(`not a PvescalerError: ${String(outcome)}`);
}

/** The number of promises that resolved, and the error codes of the others. */
export async function countOutcomes(
  promises: readonly Promise<unknown>[],
): Promise<{ readonly resolved: number; readonly codes: readonly ErrorCode[] }> {
  const settled = await Promise.allSettled(promises);
  const rejected = settled.filter((one) => one.status === 'rejected');
  const codes = await Promise.all(
    rejected.map(({ reason }) => rejectionCode(Promise.reject(reason))),
  );
  return { resolved: settled.length - rejected.length, codes };
}

export function aborted(): AbortSignal {
  return AbortSignal.abort();
}

/** Fails the test if the value is undefined. */
export function expectPresent<T>(value: T | undefined): T {
  return value ?? expect.unreachable('the value is undefined');
}
