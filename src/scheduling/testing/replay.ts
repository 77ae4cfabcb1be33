// SPDX-License-Identifier: Apache-2.0
// Replays a packing step by step, as the scheduler would live through it: before the first step that needs
// one all machines are there, and before the first pod of each its daemons come. Returns what some filter
// refuses.

import { fits, type Packing, type Reason, type Snapshot, withNodes, withPod } from '../index.ts';

export interface BadStep {
  readonly pod: string;
  readonly node: string;
  readonly reasons: readonly Reason[];
}

export function replay(snapshot: Snapshot, packing: Packing): readonly BadStep[] {
  const nodes = packing.machines.map(({ node }) => node);
  const daemons = new Map(packing.machines.map((one) => [one.node.name, one.daemons]));
  const bad: BadStep[] = [];
  let now = snapshot;
  for (const { pod, node, how } of packing.existing) {
    if (how === 'nominated') now = withPod(now, pod, node);
  }
  let haveArrived = false;
  for (const { pod, node } of packing.steps) {
    const first = daemons.get(node) ?? [];
    if (daemons.delete(node) && !haveArrived) {
      now = withNodes(now, nodes);
      haveArrived = true;
    }
    for (const one of [...first, pod]) {
      const verdict = fits(now, one, node);
      if (!verdict.fits) bad.push({ pod: one.name, node, reasons: verdict.reasons });
      now = withPod(now, one, node);
    }
  }
  for (const { pod, node } of packing.latecomers) {
    const verdict = fits(now, pod, node);
    if (!verdict.fits) bad.push({ pod: pod.name, node, reasons: verdict.reasons });
    now = withPod(now, pod, node);
  }
  return bad;
}
