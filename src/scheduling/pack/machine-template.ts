// SPDX-License-Identifier: Apache-2.0
// A template of the machines that a pool would add to a domain. They differ only in size and name.

import type { DaemonSet } from '../../model/daemon-set.ts';
import { formatLabels, type Labels } from '../../model/labels.ts';
import type { Node } from '../../model/node.ts';
import { selectNodeByName } from '../../model/node-selector.ts';
import type { Pod } from '../../model/pod.ts';
import { NO_RESOURCES } from '../../model/resources.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import { podAllowsNode } from '../state/pending-pod.ts';
import { Budget, type Growth, type LimitHit, machineGrowth, sizeGrowth } from './budget.ts';
import { type Load, loadWith, NO_LOAD } from './load.ts';
import {
  type DomainOffer,
  isSizeRange,
  type Limits,
  type PoolOffer,
  type SizeOffer,
} from './offer.ts';
import {
  optionsFromList,
  optionsFromRange,
  type SizeOption,
  type SizeOptions,
} from './size-options.ts';
import type { Weights } from './weights.ts';

const HOSTNAME = 'kubernetes.io/hostname';
/** Stands for any machine of a template. No node has this name, since node names are lower case. */
export const ANY_MACHINE = 'ANY';

const UNNAMED_DOMAIN: DomainOffer = { name: '', labels: {} };

export class MachineTemplate {
  readonly pool: PoolOffer;
  readonly domain: DomainOffer;
  readonly sizeOptions: SizeOptions;
  readonly #labels: Labels;
  readonly #budgets: readonly TemplateBudget[];
  readonly #daemonSets: readonly DaemonSet[];
  /** The labels of its sizes. */
  readonly sizeLabels: string;
  /** The requests of all its daemon pods. */
  readonly daemonLoad: Load;
  /** Machines opened from it so far. */
  machines = 0;
  /** Requests of the unplaced pods that may use it. */
  expectedCpuMilli = 0;
  expectedMemoryBytes = 0;

  constructor(parts: {
    readonly pool: PoolOffer;
    readonly domain: DomainOffer;
    readonly sizeOptions: SizeOptions;
    readonly labels: Labels;
    readonly budgets: readonly TemplateBudget[];
    readonly daemonSets: readonly DaemonSet[];
    readonly cluster: ClusterState;
  }) {
    this.pool = parts.pool;
    this.domain = parts.domain;
    this.sizeOptions = parts.sizeOptions;
    this.sizeLabels = formatLabels(parts.labels);
    this.#labels = { ...parts.pool.labels, ...parts.domain.labels, ...parts.labels };
    this.#budgets = parts.budgets.filter(({ budget }) => budget.isLimited);
    this.#daemonSets = parts.daemonSets.filter(({ pod }) =>
      daemonRunsOn(pod, this.node(ANY_MACHINE), parts.cluster),
    );
    this.daemonLoad = this.daemons(ANY_MACHINE)
      .map(({ requests }) => parts.cluster.resources.demand(requests))
      .reduce((load, demand) => loadWith(demand, load), NO_LOAD);
  }

  /** The node of a machine with this name, without a size. */
  node(name: string): Node {
    return {
      name,
      labels: { ...this.#labels, [HOSTNAME]: name },
      taints: this.pool.taints,
      isUnschedulable: false,
      allocatable: NO_RESOURCES,
      declaredFeatures: this.pool.declaredFeatures ?? [],
    };
  }

  /** The pods that DaemonSet controllers would create for it. */
  daemons(nodeName: string): readonly Pod[] {
    return this.#daemonSets.map(({ pod }) => daemonPodFor(pod, nodeName));
  }

  get isLimited(): boolean {
    return this.#budgets.length > 0 || this.domain.maxCpuMilli !== undefined;
  }

  expectLoad(cpuMilli: number, memoryBytes: number): void {
    this.expectedCpuMilli += cpuMilli;
    this.expectedMemoryBytes += memoryBytes;
  }

  findExceededLimit(growth: Growth): LimitHit | undefined {
    const { name, maxCpuMilli: allowed = Infinity } = this.domain;
    // A new machine; one that grows is checked by its size.
    if (growth.machines === 1 && growth.cpuMilli > allowed) {
      const of = `${this.pool.name}/${name}`;
      return { of, limit: 'cpu', allowed, used: 0, adding: growth.cpuMilli };
    }
    for (const { budget, overheadBytes } of this.#budgets) {
      const exceeded = budget.findExceededLimit(withOverhead(growth, overheadBytes));
      if (exceeded !== undefined) return exceeded;
    }
    return undefined;
  }

  /** The cheapest size within the limits for a new machine with this load. */
  cheapestToOpen(load: Load): SizeOption | undefined {
    if (!this.isLimited) return this.sizeOptions.cheapestFor(load, 0);
    return this.sizeOptions.cheapestFor(
      load,
      0,
      ({ size }) => this.findExceededLimit(machineGrowth(size.capacity)) === undefined,
    );
  }

  #isStartable({ capacity }: SizeOption['size']): boolean {
    const { maxCpuMilli } = this.domain;
    return maxCpuMilli === undefined || capacity.cpuMilli <= maxCpuMilli;
  }

  /**
   * The cheapest size within the limits for a planned machine whose load grows. It may have less CPU or memory
   * than the current one, and so give back a part of a limit, only if `mayGiveBack`.
   */
  cheapestToGrow(load: Load, current: SizeOption, mayGiveBack: boolean): SizeOption | undefined {
    if (!this.isLimited) return this.sizeOptions.cheapestFor(load, current.index);
    return this.sizeOptions.cheapestFor(load, current.index, ({ size }) => {
      if (!this.#isStartable(size)) return false;
      const growth = sizeGrowth(current.size.capacity, size.capacity);
      const isLess = growth.cpuMilli < 0 || growth.memoryBytes < 0 || growth.diskBytes < 0;
      if (!mayGiveBack && isLess) return false;
      return this.findExceededLimit(growth) === undefined;
    });
  }

  consume(growth: Growth): void {
    this.machines += growth.machines;
    for (const { budget, overheadBytes } of this.#budgets)
      budget.consume(withOverhead(growth, overheadBytes));
  }
}

/** A limit, and the memory that each machine takes from it beyond its capacity. */
interface TemplateBudget {
  readonly budget: Budget;
  readonly overheadBytes: number;
}

function withOverhead(growth: Growth, overheadBytes: number): Growth {
  if (growth.machines === 0 || overheadBytes === 0) return growth;
  return { ...growth, memoryBytes: growth.memoryBytes + overheadBytes };
}

/** The pods that DaemonSet controllers create for a node. */
export function daemonPodsOf(
  node: Node,
  daemonSets: readonly DaemonSet[],
  cluster: ClusterState,
): readonly Pod[] {
  return daemonSets
    .filter(({ pod }) => daemonRunsOn(pod, node, cluster))
    .map(({ pod }) => daemonPodFor(pod, node.name));
}

// The DaemonSet controller replaces the pod's node affinity by the node's name, so topology spread counts that
// node only. Claims of its ephemeral volumes do not exist before the pod.
function daemonPodFor(pod: Pod, nodeName: string): Pod {
  return {
    ...pod,
    name: `${pod.name}-${nodeName}`,
    nodeAffinity: selectNodeByName(nodeName),
    volumes: pod.volumes.filter(({ kind }) => kind !== 'ephemeral'),
  };
}

// Resources are not checked: the controller creates the pod, and the machine's size must hold it.
function daemonRunsOn(pod: Pod, node: Node, cluster: ClusterState): boolean {
  return (
    (pod.nodeName === '' || pod.nodeName === node.name) &&
    podAllowsNode(pod, node) &&
    cluster.findUntoleratedTaint(pod, node) === undefined
  );
}

export interface TemplateContext {
  readonly cluster: ClusterState;
  readonly weights: Weights;
  readonly daemonSets: readonly DaemonSet[];
  /** Limits of domains that several pools share. */
  readonly domainLimits: ReadonlyMap<string, Limits>;
}

export function templatesOf(
  pools: readonly PoolOffer[],
  context: TemplateContext,
): readonly MachineTemplate[] {
  const shared = new Map<string, Budget>();
  for (const [name, limits] of context.domainLimits) shared.set(name, new Budget(name, limits));
  return pools.flatMap((pool) => {
    const own = new Budget(pool.name, pool.limits ?? {});
    const labelled = sizeOptionsByLabels(pool, context);
    return (pool.domains ?? [UNNAMED_DOMAIN]).flatMap((domain) => {
      const place = new Budget(`${pool.name}/${domain.name}`, domain.limits ?? {});
      const overheadBytes = pool.memoryOverheadBytes ?? 0;
      const budgets = [
        { budget: own, overheadBytes: 0 },
        ...[place, shared.get(domain.name)].flatMap((budget) =>
          budget === undefined ? [] : [{ budget, overheadBytes }],
        ),
      ];
      return labelled.map(
        ({ sizeOptions, labels }) =>
          new MachineTemplate({
            pool,
            domain,
            sizeOptions,
            labels,
            budgets,
            daemonSets: context.daemonSets,
            cluster: context.cluster,
          }),
      );
    });
  });
}

interface LabelledSizeOptions {
  readonly sizeOptions: SizeOptions;
  readonly labels: Labels;
}

// A machine may grow only between sizes with equal labels.
function sizeOptionsByLabels(
  pool: PoolOffer,
  context: TemplateContext,
): readonly LabelledSizeOptions[] {
  const { sizes } = pool;
  const { resources } = context.cluster;
  if (isSizeRange(sizes)) {
    return [{ sizeOptions: optionsFromRange(sizes, resources, context.weights), labels: {} }];
  }
  const byLabels = Map.groupBy(sizes, (size: SizeOffer) => formatLabels(size.labels ?? {}));
  return [...byLabels.values()].flatMap((alike) => {
    const sizeOptions = optionsFromList(alike, resources, context.weights);
    return sizeOptions === undefined ? [] : [{ sizeOptions, labels: alike[0]?.labels ?? {} }];
  });
}
