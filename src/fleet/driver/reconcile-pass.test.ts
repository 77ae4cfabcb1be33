// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { Unauthorized, Unreachable } from '../../ports/errors.ts';
import { aTestFleet, journalReasonsIn, onePass } from '../testing/test-fleet.ts';

describe('a region that cannot be read', () => {
  it('is recorded once, as refused or as stale, and its recovery too', async () => {
    const testFleet = aTestFleet();
    const { clock, fleet, hypervisor, store } = testFleet;
    const view = hypervisor.view.bind(hypervisor);
    const passes = async (error: Error | undefined) => {
      hypervisor.view = async () => {
        if (error !== undefined) throw error;
        return view();
      };
      for (const _ of [1, 2]) {
        await clock.advance(60_000);
        await onePass(fleet, testFleet);
      }
    };
    await passes(new Unauthorized('CREDENTIALS_REFUSED', 'invalid token value!'));
    await passes(undefined);
    await passes(new Unreachable('PVE_UNREACHABLE', 'connection refused'));
    await passes(undefined);
    expect(await journalReasonsIn(store)).toEqual([
      'RegionRefused',
      'ViewRecovered',
      'ViewStale',
      'ViewRecovered',
    ]);
  });
});
