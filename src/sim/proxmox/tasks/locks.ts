// SPDX-License-Identifier: Apache-2.0
// File locks of a host: exclusive or shared, first in first out, with a timeout for waiters. Locks without a holder
// or waiter use no memory.
import type { Clock } from '../../../ports/clock.ts';

interface Waiter {
  readonly shared: boolean;
  readonly grant: () => void;
}

interface Lock {
  exclusive: boolean;
  shared: number;
  readonly waiting: Waiter[];
}

export interface LockRequest {
  readonly name: string;
  readonly shared?: boolean;
  readonly timeoutMs: number;
  /** Creates the error to throw on timeout. */
  readonly onTimeout: () => Error;
}

export class Locks {
  readonly #clock: Clock;
  readonly #locks = new Map<string, Lock>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Names of all locks held now. */
  held(): readonly string[] {
    return [...this.#locks.keys()].toSorted();
  }

  async withLock<T>(request: LockRequest, work: () => Promise<T>): Promise<T> {
    await this.#acquire(request);
    try {
      return await work();
    } finally {
      this.#release(request.name, request.shared === true);
    }
  }

  async #acquire(request: LockRequest): Promise<void> {
    const lock = this.#locks.get(request.name) ?? { exclusive: false, shared: 0, waiting: [] };
    this.#locks.set(request.name, lock);
    const shared = request.shared === true;
    if (lock.waiting.length === 0 && canAcquire(lock, shared)) return acquireNow(lock, shared);
    const granted = new AbortController();
    const waiter: Waiter = {
      shared,
      grant: () => {
        acquireNow(lock, shared);
        granted.abort();
      },
    };
    lock.waiting.push(waiter);
    try {
      await this.#clock.sleep(request.timeoutMs, { signal: granted.signal });
    } catch {
      // The sleep was aborted: the lock is granted.
    }
    if (granted.signal.aborted) return;
    lock.waiting.splice(lock.waiting.indexOf(waiter), 1);
    this.#wake(request.name, lock);
    throw request.onTimeout();
  }

  #release(name: string, shared: boolean): void {
    const lock = this.#locks.get(name);
    if (lock === undefined) return;
    if (shared) lock.shared -= 1;
    else lock.exclusive = false;
    this.#wake(name, lock);
  }

  #wake(name: string, lock: Lock): void {
    for (let next = lock.waiting[0]; next !== undefined && canAcquire(lock, next.shared); ) {
      lock.waiting.shift();
      next.grant();
      next = lock.waiting[0];
    }
    if (!lock.exclusive && lock.shared === 0 && lock.waiting.length === 0) this.#locks.delete(name);
  }
}

function canAcquire(lock: Lock, shared: boolean): boolean {
  return !lock.exclusive && (shared || lock.shared === 0);
}

function acquireNow(lock: Lock, shared: boolean): void {
  if (shared) lock.shared += 1;
  else lock.exclusive = true;
}
