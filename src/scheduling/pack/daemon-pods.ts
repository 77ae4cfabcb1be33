// SPDX-License-Identifier: Apache-2.0
// DaemonSet pods of a new machine. Their controller creates one for every node that selectors and taints allow,
// but the scheduler checks them like any other pod: a daemon pod with an anti-affinity conflict, a port
// conflict or an unmet affinity waits. Other pods must not rely on a waiting daemon pod. Only its space stays
// reserved, as long as other pods fit elsewhere, because it is admitted as soon as the conflict is gone. No
// machine is created for it.

import type { Pod } from '../../model/pod.ts';
import { isPermanentlyRejected, isReversiblyRejected } from '../filters/all.ts';
import { newPlacedPodOn } from '../filters/volume-binding.ts';
import type { Draft } from '../snapshot.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import type { NodeInfo } from '../state/node-info.ts';
import { newPendingPod, type PendingPod } from '../state/pending-pod.ts';
import type { PlacedPod } from '../state/placed-pod.ts';
import { type Load, loadWith, NO_LOAD } from './load.ts';
import { loadFits, type SizeOption } from './size-options.ts';

export class DaemonPods {
  readonly #nodeInfo: NodeInfo;
  readonly #cluster: ClusterState;
  #waiting: readonly PendingPod[];
  #load: Load;
  readonly #cached = new Map<PendingPod, PlacedPod>();
  constructor(pods: readonly Pod[], nodeInfo: NodeInfo, cluster: ClusterState) {
    this.#nodeInfo = nodeInfo;
    this.#cluster = cluster;
    this.#waiting = pods.map((pod) => newPendingPod(pod, cluster));
    this.#load = totalLoad(this.#waiting);
  }

  /** Whether no daemon pod is waiting. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** The total requests of the waiting daemon pods. */
  get load(): Load {
    return this.#load;
  }

  /** Runs `work` while the currently admissible daemon pods are placed. */
  whileAdmitted<T>(work: () => T): T {
    if (this.isEmpty) return work();
    const { admitted } = this.#tryAdmit((placedPod) =>
      this.#cluster.addPod(placedPod, this.#nodeInfo),
    );
    try {
      return work();
    } finally {
      for (const placedPod of admitted) this.#cluster.removePod(placedPod, this.#nodeInfo);
    }
  }

  /** Places the currently admissible daemon pods permanently. The others keep waiting. */
  admit(draft: Draft, size?: SizeOption): readonly Pod[] {
    const place = (placedPod: PlacedPod): void => draft.addPod(placedPod, this.#nodeInfo);
    const { admitted, waiting } = this.#tryAdmit(place, size);
    this.#waiting = waiting;
    this.#load = totalLoad(waiting);
    return admitted.map(({ pod }) => pod);
  }

  // One after the other, because they may exclude each other.
  #tryAdmit(
    place: (placedPod: PlacedPod) => void,
    size?: SizeOption,
  ): { readonly admitted: readonly PlacedPod[]; readonly waiting: readonly PendingPod[] } {
    const admitted: PlacedPod[] = [];
    const waiting: PendingPod[] = [];
    for (const pendingPod of this.#waiting) {
      if (this.#isRejected(pendingPod, size)) {
        waiting.push(pendingPod);
      } else {
        const placedPod = this.#newPlacedPod(pendingPod);
        place(placedPod);
        admitted.push(placedPod);
      }
    }
    return { admitted, waiting };
  }

  // Without a size, resources are not checked: the size is chosen later.
  #isRejected(pendingPod: PendingPod, size: SizeOption | undefined): boolean {
    const isTooLarge =
      size !== undefined &&
      !loadFits(loadWith(pendingPod.demand, this.#nodeInfo.used), size.allocatable);
    return (
      isTooLarge ||
      isPermanentlyRejected(pendingPod, this.#nodeInfo, this.#cluster) ||
      isReversiblyRejected(pendingPod, this.#nodeInfo, this.#cluster)
    );
  }

  // Storage is planned each time; everything else of a placed pod is reused.
  #newPlacedPod(pendingPod: PendingPod): PlacedPod {
    const { pod } = pendingPod;
    if (pod.volumes.length === 0) {
      const known = this.#cached.get(pendingPod) ?? this.#cluster.newPlacedPod(pod, pod.requests);
      this.#cached.set(pendingPod, known);
      return known;
    }
    return newPlacedPodOn(this.#nodeInfo, pod, this.#cluster);
  }
}

function totalLoad(pendingPods: readonly PendingPod[]): Load {
  return pendingPods.reduce((load, { demand }) => loadWith(demand, load), NO_LOAD);
}
