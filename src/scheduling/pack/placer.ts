// SPDX-License-Identifier: Apache-2.0
// Places the pods of a group into open bins, each into the bin with the least space left over.

import { matchesNodeTerm } from '../../model/node-selector.ts';
import type { Pod } from '../../model/pod.ts';
import { isPermanentlyRejected, isReversiblyRejected, passesNodeRules } from '../filters/all.ts';
import { newPlacedPodOn } from '../filters/volume-binding.ts';
import type { Draft } from '../snapshot.ts';
import type { NodeInfo } from '../state/node-info.ts';
import type { PlacedPod } from '../state/placed-pod.ts';
import { CPU, MEMORY } from '../state/resource-names.ts';
import { type Bin, Bins, newBin } from './bins.ts';
import type { PodGroup } from './groups.ts';

export interface PodPlacement {
  readonly pod: Pod;
  readonly bin: Bin;
}

const UNKNOWN = 0;
const YES = 1;
const NO = 2;

export class Placer {
  readonly draft: Draft;
  readonly placements: PodPlacement[] = [];
  readonly #bins: Bins;
  readonly #open: Bin[] = [];
  /** By rules number of the group, then by rule class of the bin. */
  readonly #nodeRuleResults: number[][] = [];
  readonly #preferences: number[][] = [];
  /** Bins that permanently reject a group's rules while pods are only added. */
  readonly #rejectedBins: Set<Bin>[] = [];
  readonly #cached = new Map<PodGroup['pendingPod'], PlacedPod>();
  #ruleClasses = 0;
  #names = 0;

  constructor(draft: Draft, weights: { readonly cpu: number; readonly memory: number }) {
    this.draft = draft;
    this.#bins = new Bins(weights);
  }

  /** A unique name for a planned machine. */
  freeName(prefix: string): string {
    do this.#names += 1;
    while (this.draft.cluster.nodeInfo(`${prefix}-new-${this.#names}`) !== undefined);
    return `${prefix}-new-${this.#names}`;
  }

  newRuleClass(): number {
    this.#ruleClasses += 1;
    return this.#ruleClasses - 1;
  }

  addNode(nodeInfo: NodeInfo): Bin {
    return this.open(newBin(nodeInfo, this.newRuleClass()));
  }

  open(bin: Bin): Bin {
    bin.isOpen = true;
    this.#open.push(bin);
    this.refresh(bin);
    return bin;
  }

  /** Starts a new pass: permanently rejected bins are checked again. */
  startPass(): void {
    this.#rejectedBins.length = 0;
  }

  refresh(bin: Bin): void {
    this.#bins.put(bin, { cpuMilli: freeIn(bin, CPU), memoryBytes: freeIn(bin, MEMORY) });
  }

  /** Places as many pods as fit and returns their number. */
  fill(group: PodGroup, from: number): number {
    let next = from;
    let last: Bin | undefined;
    while (next < group.pods.length) {
      const bin = this.#reuseBin(group, last) ?? this.findBin(group);
      if (bin === undefined) break;
      this.place(group, next, bin);
      last = bin;
      next += 1;
    }
    return next - from;
  }

  // The tightest bin for the last pod is even tighter for the next equal pod.
  #reuseBin(group: PodGroup, last: Bin | undefined): Bin | undefined {
    return last !== undefined && this.hasCapacity(group, last) && this.accepts(group, last)
      ? last
      : undefined;
  }

  findBin(group: PodGroup): Bin | undefined {
    if (this.isRejectedEverywhere(group)) return undefined;
    if (group.pendingPod.pod.preferredNodes.length > 0) return this.#findPreferred(group);
    return this.#bins.tightest(
      group,
      (bin) => this.hasCapacity(group, bin) && this.accepts(group, bin),
    );
  }

  #findPreferred(group: PodGroup): Bin | undefined {
    const levels = new Set(this.#bins.all().map((bin) => this.preference(group, bin)));
    for (const level of [...levels].sort((a, b) => b - a)) {
      const found = this.#bins.tightest(
        group,
        (bin) =>
          this.preference(group, bin) === level &&
          this.hasCapacity(group, bin) &&
          this.accepts(group, bin),
      );
      if (found !== undefined) return found;
    }
    return undefined;
  }

  hasCapacity({ pendingPod }: PodGroup, bin: Bin): boolean {
    const { ids, amounts } = pendingPod.demand;
    for (let i = 0; i < ids.length; i += 1) {
      if ((amounts[i] ?? 0) > freeIn(bin, ids[i] ?? 0)) return false;
    }
    return true;
  }

  /** Checks everything except resources. */
  accepts(group: PodGroup, bin: Bin): boolean {
    return (
      !this.#rejectedFor(group).has(bin) &&
      this.isAllowed(group, bin) &&
      !this.#checkPermanent(group, bin) &&
      !isReversiblyRejected(group.pendingPod, bin.nodeInfo, this.draft.cluster)
    );
  }

  /** Whether all open bins permanently reject the group. */
  isRejectedEverywhere(group: PodGroup): boolean {
    return this.#rejectedFor(group).size === this.#open.length;
  }

  #checkPermanent(group: PodGroup, bin: Bin): boolean {
    const isRejected = isPermanentlyRejected(group.pendingPod, bin.nodeInfo, this.draft.cluster);
    if (isRejected && bin.isOpen) this.#rejectedFor(group).add(bin);
    return isRejected;
  }

  #rejectedFor({ rules }: PodGroup): Set<Bin> {
    const known = this.#rejectedBins[rules] ?? new Set<Bin>();
    this.#rejectedBins[rules] = known;
    return known;
  }

  isAllowed({ pendingPod, rules }: PodGroup, bin: Bin): boolean {
    const results = this.#nodeRuleResults[rules] ?? [];
    this.#nodeRuleResults[rules] = results;
    const known = results[bin.ruleClass] ?? UNKNOWN;
    if (known !== UNKNOWN) return known === YES;
    const isAllowed = passesNodeRules(pendingPod, bin.nodeInfo, this.draft.cluster);
    results[bin.ruleClass] = isAllowed ? YES : NO;
    return isAllowed;
  }

  /** The total weight of the pod's node preferences that the bin's node matches. */
  preference({ pendingPod, rules }: PodGroup, bin: Bin): number {
    const known = this.#preferences[rules] ?? [];
    this.#preferences[rules] = known;
    const weight =
      known[bin.ruleClass] ??
      pendingPod.pod.preferredNodes
        .filter(({ term }) => matchesNodeTerm(term, bin.nodeInfo.node))
        .reduce((sum, one) => sum + one.weight, 0);
    known[bin.ruleClass] = weight;
    return weight;
  }

  place(group: PodGroup, index: number, bin: Bin): void {
    const pod = group.pods[index];
    if (pod === undefined) throw new RangeError('the pod group has no pod with this index');
    this.draft.addPod(this.#newPlacedPod(group, pod, bin), bin.nodeInfo);
    this.placements.push({ pod, bin });
    this.refresh(bin);
    // A pod with anti-affinity against its own group rejects its bin for the others: recorded at once to save
    // the check.
    if (group.pendingPod.antiAffinityCounters.length > 0) this.#checkPermanent(group, bin);
  }

  // Pods of a group differ in name only, so their counters are looked up once.
  #newPlacedPod({ pendingPod }: PodGroup, pod: Pod, { nodeInfo }: Bin): PlacedPod {
    const { cluster } = this.draft;
    if (pod.volumes.length > 0) return newPlacedPodOn(nodeInfo, pod, cluster);
    const known = this.#cached.get(pendingPod) ?? cluster.newPlacedPod(pod, pod.requests);
    this.#cached.set(pendingPod, known);
    return { ...known, pod };
  }
}

function freeIn({ nodeInfo, machine }: Bin, resource: number): number {
  if (machine === undefined) return nodeInfo.free(resource);
  const taken = (nodeInfo.used[resource] ?? 0) + (machine.reserved[resource] ?? 0);
  return (machine.option.allocatable[resource] ?? 0) - taken;
}
