// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { Clock } from '../clock.ts';

interface ClockUnderTest {
  readonly clock: Clock;
  /** Lets at least this much time pass. */
  readonly advance: (ms: number) => Promise<void>;
}

export function clockContract(name: string, make: () => ClockUnderTest): void {
  describe(`Clock contract: ${name}`, () => {
    it('wakes a sleeper after its time on both clocks', async () => {
      const { clock, advance } = make();
      const [wall, monotonic] = [clock.now(), clock.monotonic()];
      const slept = clock.sleep(20);
      await advance(20);
      await slept;
      expect(clock.monotonic() - monotonic).toBeGreaterThanOrEqual(19);
      expect(clock.now() - wall).toBeGreaterThanOrEqual(19);
    });

    it.each([0, -5, Number.NaN])('resolves immediately for %s ms', async (ms) => {
      await expect(make().clock.sleep(ms)).resolves.toBeUndefined();
    });

    it('rejects with Cancelled when the signal aborts, before or during the wait', async () => {
      const { clock } = make();
      const abort = new AbortController();
      const during = clock.sleep(3_600_000, { signal: abort.signal });
      abort.abort();
      await expect(during).rejects.toMatchObject({ code: 'CANCELLED' });
      await expect(clock.sleep(1, { signal: abort.signal })).rejects.toMatchObject({
        code: 'CANCELLED',
      });
    });
  });
}
