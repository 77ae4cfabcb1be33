// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import { KubernetesSim } from '../../src/sim/kubernetes/index.ts';
import { APPLY_STEPS, runApplySteps } from './server-side-apply-steps.ts';
import { SimTransport } from './sim-transport.ts';

it('the simulated API server applies like a real one, step by step', async () => {
  const sim = new KubernetesSim({ clock: new VirtualClock(), random: new SeededRandom(4) });
  const results = await runApplySteps(new SimTransport(sim), 'http://sim.example');
  expect(results).toEqual(
    APPLY_STEPS.map(({ title, expected }) => ({ title, response: expected })),
  );
});

it('the simulated API server keeps the resource version when an apply changes nothing', async () => {
  const clock = new VirtualClock();
  const sim = new KubernetesSim({ clock, random: new SeededRandom(4) });
  sim.create('v1', 'nodes', { metadata: { name: 'n1' } });
  const versions: (string | undefined)[] = [];
  for (const _again of [1, 2]) {
    await clock.advance(60_000);
    await sim.fetch(
      new Request('http://sim.example/api/v1/nodes/n1?fieldManager=a', {
        method: 'PATCH',
        headers: { 'content-type': 'application/apply-patch+yaml' },
        body: JSON.stringify({
          apiVersion: 'v1',
          kind: 'Node',
          metadata: { name: 'n1', labels: { a: '1' } },
        }),
      }),
    );
    versions.push(sim.list('v1', 'nodes')[0]?.metadata.resourceVersion);
  }
  expect(versions[1]).toBe(versions[0]);
});
