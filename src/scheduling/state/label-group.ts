// SPDX-License-Identifier: Apache-2.0
// Pods of a namespace with equal labels are equal to every selector. The affected counters are determined once
// per group, not once per pod.

import type { Labels } from '../../model/labels.ts';
import type { DomainCounter } from './domain-counter.ts';
import type { SpreadCounter } from './spread-counter.ts';

export interface GroupIdentity {
  readonly namespace: string;
  readonly labels: Labels;
  /** Topology spread ignores terminating pods; affinity counts them. */
  readonly isTerminating: boolean;
}

export class LabelGroup implements GroupIdentity {
  readonly namespace: string;
  readonly labels: Labels;
  readonly isTerminating: boolean;
  readonly #podsByNode = new Map<number, number>();
  /** Counters that change when a pod of this group is placed. */
  readonly #counters: (DomainCounter | SpreadCounter)[] = [];
  /** Counters of other pods' anti-affinity terms that select pods of this group. */
  readonly rejectingCounters: DomainCounter[] = [];

  constructor({ namespace, labels, isTerminating }: GroupIdentity) {
    this.namespace = namespace;
    this.labels = labels;
    this.isTerminating = isTerminating;
  }

  /** Attaches a counter and adds the pods that are already placed. */
  attach(counter: DomainCounter | SpreadCounter): void {
    this.#counters.push(counter);
    for (const [nodeId, pods] of this.#podsByNode) counter.add(nodeId, pods);
  }

  addPods(nodeId: number, pods: 1 | -1): void {
    const there = (this.#podsByNode.get(nodeId) ?? 0) + pods;
    if (there === 0) this.#podsByNode.delete(nodeId);
    else this.#podsByNode.set(nodeId, there);
    for (const counter of this.#counters) counter.add(nodeId, pods);
  }
}
