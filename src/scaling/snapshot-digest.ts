// SPDX-License-Identifier: Apache-2.0
// A short text that identifies an observation within one process. Computed from the revision and counts, because hashing
// 30,000 pods takes longer than deciding. A stored input has a digest of its whole content.

import type { ScalingInput } from './input.ts';

export function digestOf({ now, revision, pending, machines, pools, hosts }: ScalingInput): string {
  const numbers = [now, revision, pending.length, machines.length, pools.length, hosts.length];
  return numbers.map((number) => Math.trunc(number).toString(36)).join('-');
}
