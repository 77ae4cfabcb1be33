// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import { KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { CUSTOM_STEPS } from './custom-resource-steps.ts';
import { runCustomSteps } from './run-custom-steps.ts';
import { SimTransport } from './sim-transport.ts';

it('the simulated API server serves a custom resource like a real one, step by step', async () => {
  const clock = new VirtualClock();
  const sim = new KubernetesSim({ clock, random: new SeededRandom(4) });
  const transport = new SimTransport(sim);
  const results = await runCustomSteps(transport, 'http://sim.example', () => clock.advance(1_000));
  expect(results).toEqual(
    CUSTOM_STEPS.map(({ title, expected }) => ({ title, response: expected })),
  );
});
