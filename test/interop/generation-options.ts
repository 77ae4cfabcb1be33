// SPDX-License-Identifier: Apache-2.0
// What each generation sends as the defaults of a group's options, and what its code makes of the answer.
import { expect } from 'vitest';
import type { Answer, Generation } from './client.ts';

/** What the autoscaler's flags say, in the fields that the generation has. */
export function defaultsOf(generation: Generation): object {
  const old = {
    scaleDownUnneededTime: { duration: '600000000000' },
    scaleDownUnreadyTime: { duration: '1200000000000' },
  };
  const newer = {
    scaleDownUnneededDuration: { seconds: 600 },
    scaleDownUnreadyDuration: { seconds: 1_200 },
    MaxNodeProvisionDuration: { seconds: 900 },
  };
  const common = { scaleDownUtilizationThreshold: 0.5, scaleDownGpuUtilizationThreshold: 0.5 };
  switch (generation) {
    case 'a0':
      return { ...common, ...old };
    case 'a':
      return { ...common, ...old, MaxNodeProvisionTime: { duration: '900000000000' } };
    case 'b':
      return { ...common, ...old, MaxNodeProvisionTime: { duration: '900000000000' }, ...newer };
    default:
      return { ...common, ...newer };
  }
}

/** As the client of that generation reads the answer; it crashes where this throws. */
export function readOptions(generation: Generation, options: Answer | null): void {
  if (options === null) return;
  if (generation === 'c') {
    for (const name of [
      'scaleDownUnneededDuration',
      'scaleDownUnreadyDuration',
      'MaxNodeProvisionDuration',
    ]) {
      expect(Number(options[name].seconds), name).toBeGreaterThan(0);
    }
    return;
  }
  expect(generation).not.toBe('a0');
  for (const name of ['scaleDownUnneededTime', 'scaleDownUnreadyTime', 'MaxNodeProvisionTime']) {
    expect(Number(options[name].duration), name).toBeGreaterThan(0);
  }
}
