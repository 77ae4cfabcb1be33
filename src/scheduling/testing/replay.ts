// SPDX-License-Identifier: Apache-2.0
// Replays a packing step by step, as the scheduler would live through it, and returns what some filter
// refuses. Machines come either together, before the first step that needs one, or each in its turn, before
// the first pod on it; then come its daemons.

import type { Pod } from '../../model/pod.ts';
import {
  fits,
  type Packing,
  type PlannedMachine,
  type Reason,
  type Snapshot,
  withNodes,
  withPod,
} from '../index.ts';

export interface BadStep {
  readonly pod: string;
  readonly node: string;
  readonly reasons: readonly Reason[];
}

export function replay(
  snapshot: Snapshot,
  packing: Packing,
  machines: 'together' | 'in turn' = 'together',
): readonly BadStep[] {
  const coming = new Map(packing.machines.map((machine) => [machine.node.name, machine]));
  const run = new Run(snapshot);
  for (const { pod, node, how } of packing.existing) if (how === 'nominated') run.put(pod, node);
  for (const { pod, node } of packing.steps) {
    const machine = coming.get(node);
    if (machine !== undefined) {
      run.join(machines === 'together' ? [...coming.values()] : [machine]);
      for (const daemon of machine.daemons) run.place(daemon, node);
    }
    coming.delete(node);
    run.place(pod, node);
  }
  for (const { pod, node } of packing.latecomers) run.place(pod, node);
  return run.bad;
}

class Run {
  readonly bad: BadStep[] = [];
  readonly #joined = new Set<string>();
  #now: Snapshot;

  constructor(from: Snapshot) {
    this.#now = from;
  }

  join(machines: readonly PlannedMachine[]): void {
    const nodes = machines.map(({ node }) => node).filter(({ name }) => !this.#joined.has(name));
    for (const { name } of nodes) this.#joined.add(name);
    this.#now = withNodes(this.#now, nodes);
  }

  place(pod: Pod, node: string): void {
    const verdict = fits(this.#now, pod, node);
    if (!verdict.fits) this.bad.push({ pod: pod.name, node, reasons: verdict.reasons });
    this.put(pod, node);
  }

  put(pod: Pod, node: string): void {
    this.#now = withPod(this.#now, pod, node);
  }
}
