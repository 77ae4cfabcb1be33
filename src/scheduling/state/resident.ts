// SPDX-License-Identifier: Apache-2.0
// What a pod means to others once it is on a node.

import type { Pod } from '../../model/pod.ts';
import type { DomainCounter } from './domain-counter.ts';
import type { LabelGroup } from './label-group.ts';
import type { Demand } from './resource-names.ts';

/** Storage that is promised to a pod when it is placed: volumes bound, claims to be provisioned there. */
export interface StoragePromise {
  readonly volumes: readonly (readonly [volume: string, claim: string])[];
  readonly provisioned: readonly string[];
}

export interface Resident {
  readonly pod: Pod;
  readonly group: LabelGroup;
  readonly held: Demand;
  /** One for each anti-affinity term of the pod: who is refused near it. */
  readonly refuses: readonly DomainCounter[];
  readonly promise?: StoragePromise;
}
