// SPDX-License-Identifier: Apache-2.0
// The next machine of a template. It is in the cluster state as an empty node while it can be opened. Topology
// spread therefore counts its domain, and earlier placements stay valid when it is opened. Its daemon pods are
// added when it is opened: a pod placed earlier because of them could lose its affinity.

import type { NodeInfo } from '../state/node-info.ts';
import type { ResourceDemand } from '../state/resource-names.ts';
import { type Bin, newBin } from './bins.ts';
import { DaemonPods } from './daemon-pods.ts';
import type { PodGroup } from './groups.ts';
import { addLoads, type Load, loadWith, NO_LOAD } from './load.ts';
import { ANY_MACHINE, type MachineTemplate } from './machine-template.ts';
import type { Placer } from './placer.ts';
import { loadFits, type SizeOption } from './size-options.ts';

const NO_DEMAND: ResourceDemand = { ids: [], amounts: [] };

interface PreparedNode {
  readonly nodeInfo: NodeInfo;
  readonly daemons: DaemonPods;
}

export class NextMachine {
  readonly template: MachineTemplate;
  readonly ruleClass: number;
  readonly #placer: Placer;
  readonly #model: Bin;
  #prepared: PreparedNode | undefined;

  constructor(template: MachineTemplate, placer: Placer) {
    this.template = template;
    this.ruleClass = placer.newRuleClass();
    this.#model = newBin(
      placer.draft.cluster.newNodeInfo(template.node(ANY_MACHINE)),
      this.ruleClass,
    );
    this.#placer = placer;
  }

  /** Whether the node rules allow pods of the group on it. */
  allows(group: PodGroup): boolean {
    return this.#placer.isAllowed(group, this.#model);
  }

  /** Whether the limits allow the smallest machine that holds the daemon pods. */
  canOpen(): boolean {
    return this.#optionFor(NO_DEMAND) !== undefined;
  }

  prepare(): void {
    if (this.#prepared !== undefined || this.#withinLimits(NO_LOAD) === undefined) return;
    const { template } = this;
    const { draft } = this.#placer;
    const name = this.#placer.freeName(template.pool.name);
    const nodeInfo = draft.addNode(template.node(name));
    this.#prepared = {
      nodeInfo,
      daemons: new DaemonPods(template.daemons(name), nodeInfo, draft.cluster),
    };
    if (!this.canOpen()) this.withdraw();
  }

  withdraw(): void {
    if (this.#prepared !== undefined) this.#placer.draft.removeNode(this.#prepared.nodeInfo);
    this.#prepared = undefined;
  }

  /** Opens it, with its daemon pods, as a machine for a pod of the group. */
  open(group: PodGroup, option: SizeOption): Bin {
    if (this.#prepared === undefined) throw new RangeError('this template has no machine to open');
    const { nodeInfo, daemons } = this.#prepared;
    this.#prepared = undefined;
    const daemonPods = daemons.admit(this.#placer.draft, option);
    const reserved = daemons.load;
    const hasSpace = loadFits(
      addLoads(loadWith(group.pendingPod.demand, nodeInfo.used), reserved),
      option.allocatable,
    );
    return newBin(nodeInfo, this.ruleClass, {
      template: this.template,
      option,
      daemons,
      daemonPods,
      reserved: hasSpace ? reserved : NO_LOAD,
    });
  }

  /** The cheapest size that holds the daemon pods and one pod of the group. */
  cheapestFor({ pendingPod }: PodGroup): SizeOption | undefined {
    return this.#optionFor(pendingPod.demand);
  }

  /** The cheapest size that holds the daemon pods and this load of other pods. */
  cheapestForLoad(load: Load): SizeOption | undefined {
    const ids = load.map((_, id) => id).filter((id) => (load[id] ?? 0) > 0);
    return this.#optionFor({ ids, amounts: ids.map((id) => load[id] ?? 0) });
  }

  // Reserves space for daemon pods that are not admitted yet. Without that space only if nothing else fits.
  #optionFor(demand: ResourceDemand): SizeOption | undefined {
    if (this.#prepared === undefined) return undefined;
    const { nodeInfo, daemons } = this.#prepared;
    const option = this.#withinLimits(loadWith(demand, daemons.load));
    if (option !== undefined || daemons.isEmpty) return option;
    return daemons.whileAdmitted(() => this.#withinLimits(loadWith(demand, nodeInfo.used)));
  }

  #withinLimits(load: Load): SizeOption | undefined {
    return this.template.cheapestToOpen(load);
  }

  accepts(group: PodGroup): boolean {
    if (this.#prepared === undefined) return false;
    const { nodeInfo, daemons } = this.#prepared;
    return daemons.whileAdmitted(() =>
      this.#placer.accepts(group, newBin(nodeInfo, this.ruleClass)),
    );
  }

  /**
   * Pool priority, then the fewest machines in the pool if pools are balanced, then cost, then the pod's node
   * preferences, then the order of domains, then the fewest machines in the domain. `opened`: machines of the pool that are planned.
   */
  rank(group: PodGroup, option: SizeOption, opened: number): readonly number[] {
    const { pool, domain, machines } = this.template;
    const preference = this.#placer.preference(group, this.#model);
    const members = pool.balance === undefined ? 0 : pool.balance + opened;
    return [-(pool.priority ?? 0), members, option.cost, -preference, domain.order ?? 0, machines];
  }
}
