// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Conflict, type PvescalerError, TimedOut, Unreachable } from '../ports/errors.ts';
import { SeededRandom } from '../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { rejectAsNotSent, rejectOnAbort, retryWithBackoff } from './retry.ts';

const FACTS = { requestSent: true, host: 'pve1' };

describe('retryWithBackoff', () => {
  it('ends a backoff when the signal aborts', async () => {
    const clock = new VirtualClock();
    const abort = new AbortController();
    const work = retryWithBackoff(() => Promise.reject(new Error('lost')), {
      clock,
      random: new SeededRandom(1),
      signal: abort.signal,
      maxAttempts: 2,
      initialBackoffMs: 1_000,
      maxBackoffMs: 1_000,
      isTransient: () => true,
    });
    const rejection = expect(work).rejects.toMatchObject({ code: 'CANCELLED' });
    await clock.advance(1);
    abort.abort();
    await rejection;
    expect(clock.sleeping).toBe(0);
  });
});

describe('rejectAsNotSent', () => {
  it.each<[PvescalerError, string]>([
    [new TimedOut('REQUEST_TIMED_OUT', 'm', { facts: FACTS }), 'REQUEST_TIMED_OUT'],
    [new Unreachable('PVE_UNREACHABLE', 'm', { facts: FACTS }), 'PVE_UNREACHABLE'],
    [new Unreachable('PVE_HOST_UNREACHABLE', 'm', { facts: FACTS }), 'PVE_HOST_UNREACHABLE'],
  ])('reports %s as not sent and keeps code, facts and cause', async (cause, code) => {
    await expect(rejectAsNotSent(Promise.reject(cause))).rejects.toMatchObject({
      code,
      message: 'm',
      facts: { requestSent: false, host: 'pve1' },
      hint: cause.hint,
      cause,
    });
  });

  it('does not change other errors', async () => {
    for (const error of [new Conflict('VM_CHANGED', 'm'), new Error('foreign')]) {
      await expect(rejectAsNotSent(Promise.reject(error))).rejects.toBe(error);
    }
  });
});

describe('rejectOnAbort', () => {
  const cancelled = { code: 'CANCELLED', facts: { requestSent: false } };

  it('rejects when the signal is aborted or aborts, and the work continues', async () => {
    const { promise: work, resolve } = Promise.withResolvers<number>();
    const abort = new AbortController();
    const rejection = expect(rejectOnAbort(work, abort.signal)).rejects.toMatchObject(cancelled);
    abort.abort();
    await rejection;
    await expect(rejectOnAbort(work, abort.signal)).rejects.toMatchObject({
      ...cancelled,
      message: 'the caller aborted the call',
    });
    const other = rejectOnAbort(work, new AbortController().signal);
    const withoutSignal = rejectOnAbort(work, undefined);
    resolve(7);
    expect(await Promise.all([other, withoutSignal])).toEqual([7, 7]);
  });

  it('leaves no listener at a signal that outlives the work', async () => {
    const { signal } = new AbortController();
    const listeners = new Set<unknown>();
    const observed = Object.assign(Object.create(signal) as AbortSignal, {
      addEventListener: (_type: string, listener: unknown) => void listeners.add(listener),
      removeEventListener: (_type: string, listener: unknown) => void listeners.delete(listener),
    });
    Object.defineProperty(observed, 'aborted', { value: false });
    await rejectOnAbort(Promise.resolve(), observed);
    await Promise.resolve();
    expect(listeners.size).toBe(0);
  });
});
