// SPDX-License-Identifier: Apache-2.0
// A pod on a node, and a pod to be placed, with the counters they affect.

import type { Pod } from '../../model/pod.ts';
import type { SpreadConstraint } from '../../model/topology-spread.ts';
import type { DomainCounter } from './domain-counter.ts';
import type { LabelGroup } from './label-group.ts';
import type { ResourceDemand } from './resource-names.ts';
import type { SpreadCounter } from './spread-counter.ts';

/** Storage reserved when a pod is placed: volumes to bind, and claims to provision on the node. */
export interface StorageReservation {
  readonly volumes: readonly (readonly [volume: string, claim: string])[];
  readonly provisioned: readonly string[];
}

export interface PlacedPod {
  readonly pod: Pod;
  readonly labelGroup: LabelGroup;
  readonly held: ResourceDemand;
  /** One counter per anti-affinity term of the pod. */
  readonly antiAffinityCounters: readonly DomainCounter[];
  readonly reservation?: StorageReservation;
  /** The pod as it will be created again, once a drain of its node was simulated. */
  moving: MovingPod | undefined;
}

/** A pod of a drained node, as it will be created again. */
export interface MovingPod {
  readonly pendingPod: PendingPod;
  /** Equal for pods with equal results of the node rules. */
  readonly nodeRules: number;
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  /** The pod as placed on its new node, if it has no volumes. */
  placedPod: PlacedPod | undefined;
  /** Once they were needed. */
  spreadScores: readonly SpreadScore[] | undefined;
}

/** A spread constraint that the scheduler prefers to keep. */
export interface SpreadScore {
  readonly counter: SpreadCounter;
  readonly maxSkew: number;
  /** Whether a node without the label gets no score at all. */
  readonly isNeeded: boolean;
}

export interface SpreadCheck {
  readonly constraint: SpreadConstraint;
  readonly counter: SpreadCounter;
  /** 1 if the pod matches its own constraint. */
  readonly self: 0 | 1;
}

export interface PendingPod {
  /** The first pod with these requirements. */
  readonly pod: Pod;
  readonly demand: ResourceDemand;
  readonly labelGroup: LabelGroup;
  readonly spreadChecks: readonly SpreadCheck[];
  /** One counter per affinity term. Each counts the pods that all terms select. */
  readonly affinityCounters: readonly DomainCounter[];
  /** Whether the pod matches its own affinity, so that the first of a series may be placed anywhere. */
  readonly matchesOwnAffinity: boolean;
  readonly antiAffinityCounters: readonly DomainCounter[];
}
