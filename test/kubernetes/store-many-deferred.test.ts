// SPDX-License-Identifier: Apache-2.0
// Deferred writes of many objects that are due at the same time.
import { expect, it, onTestFinished } from 'vitest';
import { Cancelled } from '../../src/ports/errors.ts';
import { advanceUntilSettled } from '../../src/ports/fakes/advance-until-settled.ts';
import { aMachine, aMachineId } from '../../src/ports/fakes/sample-records.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Transport, TransportRequest } from '../../src/ports/transport.ts';
import { StoreBench } from './store-bench.ts';

const COUNT = 100;
const MINUTE_MS = 60_000;

/** From now on a request, but no watch, is answered after `respond`. */
async function deferMany(
  respond: (clock: VirtualClock, request: TransportRequest) => Promise<void>,
) {
  const clock = new VirtualClock();
  const bench = new StoreBench(clock);
  let isSlow = false;
  let inProgress = 0;
  let most = 0;
  const slowed = (transport: Transport): Transport => ({
    close: () => transport.close(),
    request: async (request) => {
      if (!isSlow || request.url.includes('watch=1')) return transport.request(request);
      inProgress += 1;
      most = Math.max(most, inProgress);
      await respond(clock, request).finally(() => {
        inProgress -= 1;
      });
      return transport.request(request);
    },
  });
  const store = await bench.open({}, slowed);
  onTestFinished(() => advanceUntilSettled(clock, bench.cleanup()));
  for (let at = 0; at < COUNT; at += 1) {
    const id = aMachineId(at);
    const machine = await store.machines.create(id, aMachine({ id }));
    const placed = aMachine({ id, phase: 'placed' });
    await store.machines.replace(machine, placed, { isDeferrable: true });
  }
  isSlow = true;
  return { bench, clock, store, mostInProgress: () => most };
}

it('are sent a few at a time', async () => {
  const { clock, bench, mostInProgress } = await deferMany((at) => at.sleep(5));
  await clock.advance(5 * MINUTE_MS);
  for (let step = 0; step < COUNT; step += 1) await clock.advance(5);
  expect(mostInProgress()).toBeLessThanOrEqual(16);
  const machines = await (await bench.open()).machines.list();
  expect(machines).toHaveLength(COUNT);
  expect(new Set(machines.map(({ value }) => value.phase))).toEqual(new Set(['placed']));
});

it('do not hold up the end of the process one after the other while the API server does not answer', async () => {
  const { clock, store } = await deferMany(
    (_clock, { signal }) =>
      new Promise((_resolve, reject) => {
        const onAbort = () => reject(new Cancelled('CANCELLED', 'aborted'));
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
  );
  const before = clock.monotonic();
  await advanceUntilSettled(clock, store.close());
  expect(clock.monotonic() - before).toBeLessThanOrEqual(MINUTE_MS);
});
