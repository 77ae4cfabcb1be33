// SPDX-License-Identifier: Apache-2.0
// Some of the crash points of crash-joining.test.ts, for the runs that cannot afford all of them.
import { describe, it } from 'vitest';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { crashPointsOf, expectRecoveryAfter, type Scenario } from '../testing/joining-crash.ts';

const SAMPLED = 4;

const SCENARIOS: readonly Scenario[] = [
  { name: 'create', before: 0, expected: 1 },
  { name: 'delete', before: 1, expected: 0 },
  { name: 'drain', before: 1, expected: 0, drain: 'complete' },
  { name: 'undo a drain', before: 1, expected: 1, drain: 'blocked' },
];

describe.each(SCENARIOS)('a sample of the crash points of one machine, $name', (scenario) => {
  it('recovers from each', async () => {
    const random = new SeededRandom(17);
    const left = [...(await crashPointsOf(scenario)).crashPoints];
    for (let drawn = 0; drawn < SAMPLED; drawn += 1) {
      const [crashPoint] = left.splice(random.integer(left.length), 1);
      if (crashPoint !== undefined) await expectRecoveryAfter(scenario, crashPoint);
    }
  });
});
