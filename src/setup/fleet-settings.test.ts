// SPDX-License-Identifier: Apache-2.0
import { expect, it } from 'vitest';
import { loadText, REGION_LINES, renderedProblems } from '../config/testing/load-text.ts';
import { fleetSettings } from './fleet-settings.ts';

function maxIn(mode: string): number | undefined {
  const loaded = loadText(`mode: ${mode}
grpc: { insecure: true }
${REGION_LINES}pools:
  - name: workers
    from: { netboot: {} }
    size: { cpu: 1, memory: 2Gi, disk: 20Gi }
    limits: { max: 3 }
    schedules:
      - { start: "0 7 * * 1-5", duration: 10h, max: 8 }
      - { start: "0 7 * * 6", duration: 10h, max: 2 }
`);
  if (!loaded.ok) throw new Error(renderedProblems(loaded).join('\n'));
  const settings = fleetSettings(loaded.config, {
    cluster: 'cluster',
    holder: 'holder',
    readChecksum: () => Promise.reject(new Error('no image')),
    publicKeys: [],
    joins: {},
  });
  return settings.pools['workers']?.limits.max;
}

it('the fleet of the standalone autoscaler accepts the machines of every schedule window', () => {
  expect(maxIn('standalone')).toBe(8);
  expect(maxIn('externalgrpc')).toBe(3);
});
