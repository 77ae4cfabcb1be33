// SPDX-License-Identifier: Apache-2.0
// Pods of one namespace with the same labels are one to every selector. Which counters they move is found
// out once for the group, not once for each pod.

import type { Labels } from '../../model/labels.ts';
import type { DomainCounter } from './domain-counter.ts';
import type { SpreadCounter } from './spread-counter.ts';

export interface GroupIdentity {
  readonly namespace: string;
  readonly labels: Labels;
  /** Spread does not count pods on their way out; affinity does. */
  readonly isTerminating: boolean;
}

export class LabelGroup implements GroupIdentity {
  readonly namespace: string;
  readonly labels: Labels;
  readonly isTerminating: boolean;
  readonly #podsOnSlot = new Map<number, number>();
  /** Counters that pods of this group move when they are placed. */
  readonly #counters: (DomainCounter | SpreadCounter)[] = [];
  /** Of anti-affinity terms, held by other pods, that mean pods of this group. */
  readonly refusedBy: DomainCounter[] = [];

  constructor({ namespace, labels, isTerminating }: GroupIdentity) {
    this.namespace = namespace;
    this.labels = labels;
    this.isTerminating = isTerminating;
  }

  /** Attaches a new counter and counts the pods that are placed already. */
  feed(counter: DomainCounter | SpreadCounter): void {
    this.#counters.push(counter);
    for (const [slot, pods] of this.#podsOnSlot) counter.add(slot, pods);
  }

  move(slot: number, pods: 1 | -1): void {
    const there = (this.#podsOnSlot.get(slot) ?? 0) + pods;
    if (there === 0) this.#podsOnSlot.delete(slot);
    else this.#podsOnSlot.set(slot, there);
    for (const counter of this.#counters) counter.add(slot, pods);
  }
}
