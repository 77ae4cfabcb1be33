// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { TokenBucket } from './token-bucket.ts';

it('allows a burst, then one token per interval, and never stores more than a burst', async () => {
  const clock = new VirtualClock();
  const bucket = new TokenBucket(clock, { burst: 3, refillIntervalMs: 1_000 });
  const takeAll = () => {
    let count = 0;
    while (bucket.take()) count += 1;
    return count;
  };
  expect(takeAll()).toBe(3);
  await clock.advance(999);
  expect(takeAll()).toBe(0);
  await clock.advance(1);
  expect(takeAll()).toBe(1);
  await clock.advance(3_600_000);
  expect(takeAll()).toBe(3);
});
