// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { crashPointsOf, expectRecoveryAfter, SCENARIOS } from '../testing/joining-crash.ts';

/** A call that the scenario is about. */
const CALLS: Readonly<Record<string, string>> = {
  create: 'createBootstrapToken',
  delete: 'deleteNode',
  complete: 'evict',
  refused: 'changeNode',
  blocked: 'evict',
};

describe.each(SCENARIOS)('crash recovery of machines that join a cluster, $name', (scenario) => {
  it('recovers from a crash after every durable write and at every mutating call', async () => {
    const { crashPoints, calls } = await crashPointsOf(scenario);
    expect(calls).toContain(CALLS[scenario.drain ?? scenario.name]);
    for (const crashPoint of crashPoints) await expectRecoveryAfter(scenario, crashPoint);
  });
});
