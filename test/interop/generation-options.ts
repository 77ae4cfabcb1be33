// SPDX-License-Identifier: Apache-2.0
// The default options that each generation sends, and how its code reads the response.
import { expect } from 'vitest';
import type { Generation, RpcResponse } from './client.ts';

/** The autoscaler's flags, in the fields of the generation. */
export function defaultOptions(generation: Generation): object {
  const older = {
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
      return { ...common, ...older };
    case 'a':
      return { ...common, ...older, MaxNodeProvisionTime: { duration: '900000000000' } };
    case 'b':
      return { ...common, ...older, MaxNodeProvisionTime: { duration: '900000000000' }, ...newer };
    case 'c':
      return { ...common, ...newer };
  }
}

/** Reads the response as the client of that generation does; that client crashes where this throws. */
export function checkOptions(generation: Generation, options: RpcResponse | null): void {
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
