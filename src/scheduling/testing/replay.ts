// SPDX-License-Identifier: Apache-2.0
// Replays a packing step by step, as the scheduler would live through it: before the first step that needs
// one all machines are there with their daemons. Returns the steps that some filter refuses.

import { fits, type Packing, type Reason, type Snapshot, withNodes, withPod } from '../index.ts';

export interface BadStep {
  readonly pod: string;
  readonly node: string;
  readonly reasons: readonly Reason[];
}

export function replay(snapshot: Snapshot, packing: Packing): readonly BadStep[] {
  const machines = new Set(packing.machines.map(({ node }) => node.name));
  const bad: BadStep[] = [];
  let now = snapshot;
  for (const { pod, node, how } of packing.existing) {
    if (how === 'nominated') now = withPod(now, pod, node);
  }
  let haveArrived = false;
  for (const { pod, node } of packing.steps) {
    if (machines.has(node) && !haveArrived) {
      now = withMachines(now, packing);
      haveArrived = true;
    }
    const verdict = fits(now, pod, node);
    if (!verdict.fits) bad.push({ pod: pod.name, node, reasons: verdict.reasons });
    now = withPod(now, pod, node);
  }
  return bad;
}

function withMachines(snapshot: Snapshot, { machines }: Packing): Snapshot {
  let now = withNodes(
    snapshot,
    machines.map(({ node }) => node),
  );
  for (const { node, daemons } of machines) {
    for (const daemon of daemons) now = withPod(now, daemon, node.name);
  }
  return now;
}
