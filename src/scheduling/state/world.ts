// SPDX-License-Identifier: Apache-2.0
// The one mutable picture of a cluster behind all snapshots of it: nodes, pods on them, and the counters
// that answer affinity and spread. Counters are made when first asked for and then follow every change,
// so that a what-if costs what it changes and undoing it costs the same.

import type { Labels } from '../../model/labels.ts';
import { formatLabels } from '../../model/labels.ts';
import type { Node } from '../../model/node.ts';
import type { Pod } from '../../model/pod.ts';
import type { PodAffinityTerm } from '../../model/pod-affinity.ts';
import { DomainCounter } from './domain-counter.ts';
import { type GroupIdentity, LabelGroup } from './label-group.ts';
import { meansOther, meansPending, type NamespaceLabels } from './matching.ts';
import type { Resident, StoragePromise } from './resident.ts';
import { ResourceNames } from './resource-names.ts';
import { Slot } from './slot.ts';
import { SpreadCounter } from './spread-counter.ts';
import { Storage, type StorageObjects } from './storage.ts';
import { Topology } from './topology.ts';

/** A counter of spread: what to count, and which nodes count. `key` is equal for equal questions. */
export interface SpreadQuestion {
  readonly key: string;
  readonly topologyKey: string;
  readonly counts: (pod: { readonly namespace: string; readonly labels: Labels }) => boolean;
  readonly isEligible: (node: Node) => boolean;
}

export class World {
  readonly resources = new ResourceNames();
  readonly storage: Storage;
  readonly namespaces: NamespaceLabels;
  readonly slots: Slot[] = [];
  readonly #slotByName = new Map<string, Slot>();
  readonly #topologies = new Map<string, Topology>();
  readonly #groups = new Map<string, LabelGroup>();
  readonly #spreadCounters = new Map<string, SpreadCounter>();
  readonly #affinityCounters = new Map<string, DomainCounter>();
  readonly #affinityTerms = new Map<DomainCounter, readonly PodAffinityTerm[]>();
  readonly #spreadQuestions = new Map<SpreadCounter, SpreadQuestion>();
  readonly #refusals = new Map<string, { term: PodAffinityTerm; counter: DomainCounter }>();

  constructor(namespaces: NamespaceLabels, storage: StorageObjects) {
    this.namespaces = namespaces;
    this.storage = new Storage(storage);
  }

  slot(name: string): Slot | undefined {
    const slot = this.#slotByName.get(name);
    return slot?.isPresent === true ? slot : undefined;
  }

  /** Gives a node its number; it is not there until `addNode`. */
  newSlot(node: Node): Slot {
    const slot = new Slot(this.slots.length, node, this.resources.vector(node.allocatable));
    this.slots.push(slot);
    return slot;
  }

  /** Forgets slots that were only tried out; none of them may be in use any more. */
  forgetSlots(from: number): void {
    this.slots.length = from;
  }

  addNode(slot: Slot): void {
    slot.isPresent = true;
    this.#slotByName.set(slot.node.name, slot);
    for (const topology of this.#topologies.values()) topology.add(slot.id, slot.node);
    for (const counter of this.#spreadCounters.values()) counter.addNode(slot.id);
  }

  /** Its pods must be off it. */
  removeNode(slot: Slot): void {
    for (const counter of this.#spreadCounters.values()) counter.removeNode(slot.id);
    for (const topology of this.#topologies.values()) topology.remove(slot.id);
    slot.isPresent = false;
  }

  resident(pod: Pod, held: Pod['held'], promise?: StoragePromise): Resident {
    return {
      pod,
      group: this.group(pod),
      held: this.resources.demand(held),
      refuses: pod.antiAffinity.map((term) => this.#refusal(term)),
      ...(promise !== undefined && { promise }),
    };
  }

  place(resident: Resident, slot: Slot): void {
    slot.hold(resident);
    resident.group.move(slot.id, 1);
    for (const counter of resident.refuses) counter.add(slot.id, 1);
    if (resident.pod.volumes.length > 0) this.storage.use(resident, slot.node.name);
  }

  displace(resident: Resident, slot: Slot): void {
    slot.release(resident);
    resident.group.move(slot.id, -1);
    for (const counter of resident.refuses) counter.add(slot.id, -1);
    if (resident.pod.volumes.length > 0) this.storage.release(resident);
  }

  group(identity: GroupIdentity): LabelGroup {
    const key = `${identity.namespace} ${identity.isTerminating} ${formatLabels(identity.labels)}`;
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    const group = new LabelGroup(identity);
    this.#groups.set(key, group);
    this.#attach(group);
    return group;
  }

  #attach(group: LabelGroup): void {
    for (const [counter, question] of this.#spreadQuestions) {
      if (isSpreadBy(question, group)) group.feed(counter);
    }
    for (const [counter, terms] of this.#affinityTerms) {
      if (this.#isMeantByAll(terms, group)) group.feed(counter);
    }
    for (const { term, counter } of this.#refusals.values()) {
      if (meansPending(term, group, this.namespaces)) group.refusedBy.push(counter);
    }
  }

  topology(key: string): Topology {
    const known = this.#topologies.get(key);
    if (known !== undefined) return known;
    const topology = new Topology(key);
    for (const slot of this.slots) if (slot.isPresent) topology.add(slot.id, slot.node);
    this.#topologies.set(key, topology);
    return topology;
  }

  spreadCounter(question: SpreadQuestion): SpreadCounter {
    const known = this.#spreadCounters.get(question.key);
    if (known !== undefined) return known;
    const { slots } = this;
    const counter = new SpreadCounter(this.topology(question.topologyKey), (id) => {
      const slot = slots[id];
      return slot !== undefined && question.isEligible(slot.node);
    });
    for (const slot of slots) if (slot.isPresent) counter.addNode(slot.id);
    for (const group of this.#groups.values()) {
      if (isSpreadBy(question, group)) group.feed(counter);
    }
    this.#spreadCounters.set(question.key, counter);
    this.#spreadQuestions.set(counter, question);
    return counter;
  }

  /** Placed pods that all these terms of a pending pod mean, by the domains of one key. */
  affinityCounter(terms: readonly PodAffinityTerm[], topologyKey: string): DomainCounter {
    const key = `${topologyKey} ${JSON.stringify(terms)}`;
    const known = this.#affinityCounters.get(key);
    if (known !== undefined) return known;
    const counter = new DomainCounter(this.topology(topologyKey));
    for (const group of this.#groups.values()) {
      if (this.#isMeantByAll(terms, group)) group.feed(counter);
    }
    this.#affinityCounters.set(key, counter);
    this.#affinityTerms.set(counter, terms);
    return counter;
  }

  #isMeantByAll(terms: readonly PodAffinityTerm[], group: LabelGroup): boolean {
    return terms.every((term) => meansOther(term, group, this.namespaces));
  }

  // Who holds the same anti-affinity term is counted together.
  #refusal(term: PodAffinityTerm): DomainCounter {
    const key = JSON.stringify(term);
    const known = this.#refusals.get(key);
    if (known !== undefined) return known.counter;
    const counter = new DomainCounter(this.topology(term.topologyKey));
    this.#refusals.set(key, { term, counter });
    for (const group of this.#groups.values()) {
      if (meansPending(term, group, this.namespaces)) group.refusedBy.push(counter);
    }
    return counter;
  }
}

function isSpreadBy(question: SpreadQuestion, group: LabelGroup): boolean {
  return !group.isTerminating && question.counts(group);
}
