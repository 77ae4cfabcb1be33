// SPDX-License-Identifier: Apache-2.0
// A template: machines that a pool would bring to one place, alike in everything but size and name.

import type { DaemonSet } from '../../model/daemon-set.ts';
import { formatLabels, type Labels } from '../../model/labels.ts';
import type { Node } from '../../model/node.ts';
import { onlyNode } from '../../model/node-selector.ts';
import type { Pod } from '../../model/pod.ts';
import { NO_RESOURCES } from '../../model/resources.ts';
import { findUntolerated } from '../../model/taints.ts';
import { allowsNode } from '../state/candidate.ts';
import type { ResourceNames } from '../state/resource-names.ts';
import { Budget, type Growth, type LimitHit } from './budget.ts';
import { type Ladder, listLadder, rangeLadder } from './ladder.ts';
import { type DomainOffer, isRange, type Limits, type PoolOffer, type SizeOffer } from './offer.ts';
import type { Weights } from './weights.ts';

const HOSTNAME = 'kubernetes.io/hostname';
/** Stands for any machine of a template; no node is called so, since names have no upper case. */
export const ANY_MACHINE = 'ANY';

const NOWHERE: DomainOffer = { name: '', labels: {} };

export class Template {
  readonly pool: PoolOffer;
  readonly domain: DomainOffer;
  readonly ladder: Ladder;
  readonly #labels: Labels;
  readonly #budgets: readonly Budget[];
  readonly #daemonSets: readonly DaemonSet[];
  /** Machines made from it so far. */
  machines = 0;
  /** What pods ask for that may use it and have no place yet. */
  comingCpuMilli = 0;
  comingMemoryBytes = 0;

  constructor(parts: {
    readonly pool: PoolOffer;
    readonly domain: DomainOffer;
    readonly ladder: Ladder;
    readonly labels: Labels;
    readonly budgets: readonly Budget[];
    readonly daemonSets: readonly DaemonSet[];
  }) {
    this.pool = parts.pool;
    this.domain = parts.domain;
    this.ladder = parts.ladder;
    this.#labels = { ...parts.pool.labels, ...parts.domain.labels, ...parts.labels };
    this.#budgets = parts.budgets.filter((budget) => budget.isLimited);
    this.#daemonSets = parts.daemonSets.filter(({ pod }) => runsOn(pod, this.node(ANY_MACHINE)));
  }

  /** The node that a machine of this name would be, before it has a size. */
  node(name: string): Node {
    return {
      name,
      labels: { ...this.#labels, [HOSTNAME]: name },
      taints: this.pool.taints,
      isUnschedulable: false,
      allocatable: NO_RESOURCES,
    };
  }

  /** What the controllers of DaemonSets would make for it. */
  daemons(nodeName: string): readonly Pod[] {
    return this.#daemonSets.map(({ pod }) => podFor(pod, nodeName));
  }

  get isLimited(): boolean {
    return this.#budgets.length > 0;
  }

  expect(cpuMilli: number, memoryBytes: number): void {
    this.comingCpuMilli += cpuMilli;
    this.comingMemoryBytes += memoryBytes;
  }

  hit(growth: Growth): LimitHit | undefined {
    for (const budget of this.#budgets) {
      const hit = budget.hit(growth);
      if (hit !== undefined) return hit;
    }
    return undefined;
  }

  take(growth: Growth): void {
    this.machines += growth.machines;
    for (const budget of this.#budgets) budget.take(growth);
  }
}

// The controller puts the node's name in place of the affinity that it has already heeded, so spread counts
// that node alone. Claims for its ephemeral volumes do not exist before the pod does.
function podFor(pod: Pod, nodeName: string): Pod {
  return {
    ...pod,
    name: `${pod.name}-${nodeName}`,
    nodeAffinity: onlyNode(nodeName),
    volumes: pod.volumes.filter(({ kind }) => kind !== 'ephemeral'),
  };
}

// A DaemonSet asks for no room: its controller makes the pod, and the node has to hold it.
function runsOn(pod: Pod, node: Node): boolean {
  return (
    (pod.nodeName === '' || pod.nodeName === node.name) &&
    allowsNode(pod, node) &&
    findUntolerated(node.taints, pod.tolerations) === undefined
  );
}

export interface TemplateContext {
  readonly names: ResourceNames;
  readonly weights: Weights;
  readonly daemonSets: readonly DaemonSet[];
  /** Limits of places that several pools share. */
  readonly domainLimits: ReadonlyMap<string, Limits>;
}

export function templatesOf(
  pools: readonly PoolOffer[],
  context: TemplateContext,
): readonly Template[] {
  const shared = new Map<string, Budget>();
  for (const [name, limits] of context.domainLimits) shared.set(name, new Budget(name, limits));
  return pools.flatMap((pool) => {
    const own = new Budget(pool.name, pool.limits ?? {});
    return (pool.domains ?? [NOWHERE]).flatMap((domain) => {
      const place = new Budget(`${pool.name}/${domain.name}`, domain.limits ?? {});
      const budgets = [own, place, shared.get(domain.name)].filter((one) => one !== undefined);
      return laddersOf(pool, context).map(
        ({ ladder, labels }) =>
          new Template({ pool, domain, ladder, labels, budgets, daemonSets: context.daemonSets }),
      );
    });
  });
}

interface LabelledLadder {
  readonly ladder: Ladder;
  readonly labels: Labels;
}

// A machine may grow from size to size only while that does not change its labels.
function laddersOf(pool: PoolOffer, context: TemplateContext): readonly LabelledLadder[] {
  const { sizes } = pool;
  if (isRange(sizes)) {
    return [{ ladder: rangeLadder(sizes, context.names, context.weights), labels: {} }];
  }
  const byLabels = Map.groupBy(sizes, (size: SizeOffer) => formatLabels(size.labels ?? {}));
  return [...byLabels.values()].flatMap((alike) => {
    const ladder = listLadder(alike, context.names, context.weights);
    return ladder === undefined ? [] : [{ ladder, labels: alike[0]?.labels ?? {} }];
  });
}
