// SPDX-License-Identifier: Apache-2.0
import { expect, it, onTestFinished } from 'vitest';
import { Unreachable } from '../../src/ports/errors.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Transport } from '../../src/ports/transport.ts';
import { StoreBench } from './store-bench.ts';

async function seconds(clock: VirtualClock, count: number): Promise<void> {
  for (let second = 0; second < count; second += 1) await clock.advance(1_000);
}

it('says why its records are stale soon after watches fail, and no longer when they succeed', async () => {
  const clock = new VirtualClock();
  const bench = new StoreBench(clock);
  onTestFinished(() => bench.cleanup());
  let isLost = false;
  const unreachable = (transport: Transport): Transport => ({
    close: () => transport.close(),
    request: (request) =>
      isLost
        ? Promise.reject(new Unreachable('KUBERNETES_UNREACHABLE', 'no route'))
        : transport.request(request),
  });
  const store = await bench.open({ watchSeconds: 10 }, unreachable);
  await seconds(clock, 100);
  expect(store.staleness()).toBeUndefined();
  isLost = true;
  await seconds(clock, 15);
  expect(store.staleness()).toBeUndefined();
  await seconds(clock, 25);
  expect(store.staleness()).toMatch(/^proxmoxmachines could not be read since .*: no route$/);
  isLost = false;
  await seconds(clock, 60);
  expect(store.staleness()).toBeUndefined();
});

it('says that its records are stale after the process was paused, until they are read again', async () => {
  const clock = new VirtualClock();
  const bench = new StoreBench(clock);
  onTestFinished(() => bench.cleanup());
  const store = await bench.open();
  await seconds(clock, 30);
  expect(store.staleness()).toBeUndefined();
  clock.setWallClock(clock.now() + 60_000);
  expect(store.staleness()).toContain('were not read since this process was paused');
  await seconds(clock, 60);
  expect(store.staleness()).toBeUndefined();
});
