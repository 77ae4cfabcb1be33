// SPDX-License-Identifier: Apache-2.0
// Would the headroom survive a removal, wherever the pods are scheduled? kube-scheduler does not know placeholders, and
// prefers the node with the most free capacity, which is often the one kept as headroom. A removal that costs headroom
// would be followed by a new machine, and that by the next removal.

import { formatCount } from '../model/format-text.ts';
import type { Pod } from '../model/pod.ts';
import {
  checkFit,
  pack,
  type Snapshot,
  withoutNodes,
  withoutPod,
  withPod,
} from '../scheduling/index.ts';
import { isLeftOnNode } from './eviction-rules.ts';
import { isPlaceholder } from './headroom.ts';
import type { Candidate, Refused } from './removal-candidate.ts';

/** Machines with pods that one decision checks. */
const MAX_CHECKS = 100;
/** How many nodes with headroom of each pool are tried as the first one to get pods. */
const MAX_FIRST = 4;

export class HeadroomCheck {
  readonly #expendableBelow: number;
  readonly #placeholders: readonly Pod[];
  /** Names of the nodes that hold headroom, by pool; those with the fewest pods first. */
  readonly #holders: readonly (readonly string[])[];
  /** The cluster as kube-scheduler sees it. */
  readonly #bare: Snapshot;
  #checks = 0;

  /** `avoid`: nodes that pods are not scheduled to. */
  constructor(
    cluster: Snapshot,
    {
      expendableBelow,
      avoid,
    }: { readonly expendableBelow: number; readonly avoid: ReadonlySet<string> },
  ) {
    this.#expendableBelow = expendableBelow;
    const held = cluster.nodes
      .filter(({ name }) => !avoid.has(name))
      .map(({ name }) => ({ name, all: cluster.podsOn(name) }))
      .map(({ name, all }) => ({ name, all: all.length, pods: all.filter(isPlaceholder) }))
      .filter(({ pods }) => pods.length > 0)
      .toSorted((left, right) => left.all - left.pods.length - (right.all - right.pods.length));
    const byPool = Map.groupBy(held, ({ pods }) => Object.values(pods[0]?.nodeSelector ?? {})[0]);
    this.#holders = Array.from(byPool.values(), (nodes) => nodes.map(({ name }) => name));
    this.#placeholders = held.flatMap(({ pods }) => pods.map((pod) => ({ ...pod, nodeName: '' })));
    this.#bare = held.reduce(
      (snapshot, { name, pods }) =>
        pods.reduce((left, pod) => withoutPod(left, pod, name), snapshot),
      withoutNodes(
        cluster,
        cluster.nodes.flatMap(({ name }) => (avoid.has(name) ? [name] : [])),
      ),
    );
  }

  /** Like `refusalOf`, for a limited number of machines with pods: each check packs the headroom anew. */
  limitedRefusalOf(candidate: Candidate): Refused | undefined {
    if (this.#holders.length === 0 || candidate.utilization.pods === 0) return undefined;
    this.#checks += 1;
    if (this.#checks <= MAX_CHECKS) return this.refusalOf(candidate);
    const reason = `node ${candidate.node.name} waits: the effect on headroom is checked for ${MAX_CHECKS} nodes at a time`;
    return { code: 'NodeKeptAsHeadroom', reason };
  }

  /** Why the pods of a machine must not be evicted while these other machines are removed too. */
  refusalOf(
    { node: { name }, pods }: Candidate,
    beside: readonly Candidate[] = [],
  ): Refused | undefined {
    const moving = [pods, ...beside.map((other) => other.pods)]
      .flat()
      .filter((pod) => !isLeftOnNode(pod) && !this.#isExpendable(pod));
    const removed = [name, ...beside.map(({ node }) => node.name)];
    const holders = this.#holders.map((ofPool) => ofPool.filter((one) => !removed.includes(one)));
    if (!moving.some(({ nodeName }) => nodeName === name)) return undefined;
    const bare = withoutNodes(this.#bare, removed);
    // The nodes of each pool first, and each of them: another one might take all pods and keep its headroom.
    for (const all of holders.flatMap((ofPool) => ordersWithFirst(ofPool, holders.flat()))) {
      const holder = this.#findLoss(bare, moving, all);
      if (holder === undefined) continue;
      return {
        code: 'NodeKeptAsHeadroom',
        reason: `node ${name} is kept: its pods may be scheduled to node ${holder}, and then the headroom on ${formatCount(all.length, 'node')} would be lost`,
        facts: { headroom: holder, nodes: all.length },
      };
    }
    return undefined;
  }

  /** The node to which a pod is scheduled if that costs headroom. */
  #findLoss(bare: Snapshot, pods: readonly Pod[], holders: readonly string[]): string | undefined {
    const { cluster, nodes } = this.#fill(bare, pods, holders);
    if (nodes.length === 0) return undefined;
    const { unplaced } = pack(cluster, this.#placeholders, {
      pools: [],
      expendableBelow: this.#expendableBelow,
    });
    return unplaced.length === 0 ? undefined : nodes[0];
  }

  /** Places the pods on nodes that hold headroom, as many as fit. */
  #fill(bare: Snapshot, pods: readonly Pod[], holders: readonly string[]) {
    let cluster = bare;
    /** One per placed pod. */
    const nodes: string[] = [];
    for (const pod of pods.map((one) => ({ ...one, nodeName: '' }))) {
      const node = holders.find((name) => checkFit(cluster, pod, name).fits);
      if (node === undefined) continue;
      cluster = withPod(cluster, pod, node);
      nodes.push(node);
    }
    return { cluster, nodes };
  }

  #isExpendable({ priority }: Pod): boolean {
    return priority < this.#expendableBelow;
  }
}

/** All nodes, those of the pool first, and each of its first ones before all others. */
function ordersWithFirst(
  ofPool: readonly string[],
  all: readonly string[],
): readonly (readonly string[])[] {
  return ofPool.slice(0, MAX_FIRST).map((first) => [...new Set([first, ...ofPool, ...all])]);
}
