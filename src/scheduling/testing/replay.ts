// SPDX-License-Identifier: Apache-2.0
// Replays a packing step by step as the scheduler would, and returns the steps that a filter rejects. Machines
// are added either all together before the first step that needs one, or each just before its first pod; its
// daemon pods follow.

import type { Pod } from '../../model/pod.ts';
import {
  checkFit,
  type FilterReason,
  type Packing,
  type PlannedMachine,
  type Snapshot,
  withNodes,
  withPod,
} from '../index.ts';

export interface RejectedStep {
  readonly pod: string;
  readonly node: string;
  readonly reasons: readonly FilterReason[];
}

export function replay(
  snapshot: Snapshot,
  packing: Packing,
  machines: 'together' | 'one by one' = 'together',
): readonly RejectedStep[] {
  const coming = new Map(packing.machines.map((machine) => [machine.node.name, machine]));
  const replayed = new Replay(snapshot);
  for (const { pod, node, how } of packing.existing)
    if (how === 'nominated') replayed.addPod(pod, node);
  for (const { pod, node } of packing.steps) {
    const machine = coming.get(node);
    if (machine !== undefined) {
      replayed.addMachines(machines === 'together' ? [...coming.values()] : [machine]);
      for (const daemon of machine.daemons) replayed.checkAndAdd(daemon, node);
    }
    coming.delete(node);
    replayed.checkAndAdd(pod, node);
  }
  for (const { pod, node } of packing.lateDaemonPods) replayed.checkAndAdd(pod, node);
  return replayed.rejected;
}

class Replay {
  readonly rejected: RejectedStep[] = [];
  readonly #joined = new Set<string>();
  #now: Snapshot;

  constructor(from: Snapshot) {
    this.#now = from;
  }

  addMachines(machines: readonly PlannedMachine[]): void {
    const nodes = machines.map(({ node }) => node).filter(({ name }) => !this.#joined.has(name));
    for (const { name } of nodes) this.#joined.add(name);
    this.#now = withNodes(this.#now, nodes);
  }

  checkAndAdd(pod: Pod, node: string): void {
    const verdict = checkFit(this.#now, pod, node);
    if (!verdict.fits) this.rejected.push({ pod: pod.name, node, reasons: verdict.reasons });
    this.addPod(pod, node);
  }

  addPod(pod: Pod, node: string): void {
    this.#now = withPod(this.#now, pod, node);
  }
}
