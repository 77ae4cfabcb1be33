// SPDX-License-Identifier: Apache-2.0
// A pod on a node, with the counters it affects.

import type { Pod } from '../../model/pod.ts';
import type { DomainCounter } from './domain-counter.ts';
import type { LabelGroup } from './label-group.ts';
import type { ResourceDemand } from './resource-names.ts';

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
}
