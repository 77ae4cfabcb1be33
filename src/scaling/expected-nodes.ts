// SPDX-License-Identifier: Apache-2.0
// The nodes that machines will become: of machines being provisioned, and of a pool's next machine.

import type { PoolConfig } from '../config/types/index.ts';
import type { MachineSize } from '../model/machine.ts';
import type { Node } from '../model/node.ts';
import { parseResources, type Resources } from '../model/resources.ts';
import { sizeKey, templateNode } from '../pools/index.ts';
import type { ScalingInput, ScalingMachine, ScalingPool } from './input.ts';

export const ZONE_LABEL = 'topology.kubernetes.io/zone';
export const REGION_LABEL = 'topology.kubernetes.io/region';
const HOSTNAME_LABEL = 'kubernetes.io/hostname';
const INSTANCE_TYPE_LABEL = 'node.kubernetes.io/instance-type';

export interface ExpectedNode {
  readonly machine: ScalingMachine;
  readonly node: Node;
}

/** Whether the machine exists, or will, and is not being removed. */
export function isStaying(machine: ScalingMachine): boolean {
  const { phase } = machine;
  return (
    !machine.isBeingDeleted &&
    !machine.isDraining &&
    phase !== 'draining' &&
    phase !== 'deleting' &&
    phase !== 'kept' &&
    phase !== 'failed' &&
    phase !== 'gone'
  );
}

/** Nodes that are being removed. */
export function findLeavingNodes({ machines, snapshot }: ScalingInput): readonly Node[] {
  const leaving = new Set(
    machines.flatMap((machine) =>
      isStaying(machine) || machine.node === undefined ? [] : [machine.node.name],
    ),
  );
  return leaving.size === 0 ? [] : snapshot.nodes.filter(({ name }) => leaving.has(name));
}

/** Whether it counts towards the limits of its pool. */
export function isMember({ phase, isBeingDeleted }: ScalingMachine): boolean {
  const isOver = phase === 'kept' || phase === 'failed' || phase === 'gone';
  return !isBeingDeleted && phase !== 'deleting' && !isOver;
}

export function isReady(machine: ScalingMachine): boolean {
  return machine.phase === 'ready' && machine.node !== undefined;
}

/** Why a requested machine will not be placed soon. */
export function findPlaceRefusal(
  machine: ScalingMachine,
  { pools, now, unreadRegions = {} }: Pick<ScalingInput, 'pools' | 'now' | 'unreadRegions'>,
): string | undefined {
  if (machine.phase !== undefined && machine.phase !== 'requested') return undefined;
  if (machine.refusal !== undefined) return machine.refusal.message;
  const pool = pools.find(({ config }) => config.name === machine.pool);
  if (pool === undefined) return undefined;
  const { config, backoff } = pool;
  const { requestedHost } = machine;
  const regions = requestedHost === undefined ? config.regions : [requestedHost.region];
  const isUnread = (region: string): boolean => unreadRegions[region] !== undefined;
  if (regions.length > 0 && regions.every(isUnread))
    return `region ${regions.join(', ')} cannot be read`;
  return backoff !== undefined && backoff.until > now ? backoff.message : undefined;
}

/** Machines that will become nodes. A machine that finds no place is not among them: its pods need another one. */
export function findExpectedNodes(input: ScalingInput): readonly ExpectedNode[] {
  const nodes = new NodeTemplates(input);
  return input.machines.flatMap((machine) => {
    // A ready machine without a Node has lost it, and gets it back or is replaced.
    if (!isStaying(machine) || machine.phase === 'ready') return [];
    if (findPlaceRefusal(machine, input) !== undefined) return [];
    const node = nodes.nodeOf(machine);
    return node === undefined ? [] : [{ machine, node }];
  });
}

class NodeTemplates {
  readonly #pools: ReadonlyMap<string, ScalingPool>;
  readonly #joined: ReadonlyMap<string, Node>;
  readonly #gpuLabel: string;
  readonly #templates = new Map<string, SizedTemplate>();

  constructor({ pools, snapshot, settings, machines }: ScalingInput) {
    this.#pools = new Map(pools.map((pool) => [pool.config.name, pool]));
    this.#gpuLabel = settings.gpuLabel;
    const isJoining = machines.some((machine) => !isReady(machine) && machine.node !== undefined);
    this.#joined = new Map(isJoining ? snapshot.nodes.map((node) => [node.name, node]) : []);
  }

  nodeOf(machine: ScalingMachine): Node | undefined {
    const pool = this.#pools.get(machine.pool);
    if (pool === undefined || !pool.config.joins) return undefined;
    const template = this.#templateOf(pool, machine);
    const joined = machine.node && this.#joined.get(machine.node.name);
    const name = expectedName(machine);
    const place = machine.placement ?? machine.requestedHost;
    return {
      name,
      labels: {
        ...topologyLabels(pool.config, place),
        ...template.labels,
        ...joined?.labels,
        [HOSTNAME_LABEL]: name,
      },
      // The taints of a node that has just registered are removed before it is ready.
      taints: template.taints,
      isUnschedulable: false,
      allocatable: isMeasured(joined?.allocatable) ? joined.allocatable : template.allocatable,
      declaredFeatures: joined?.declaredFeatures ?? [],
    };
  }

  #templateOf(pool: ScalingPool, { size }: ScalingMachine): SizedTemplate {
    const key = `${pool.config.name} ${sizeKey(size)}`;
    const template =
      this.#templates.get(key) ?? sizedTemplate(pool, size, { gpuLabel: this.#gpuLabel });
    this.#templates.set(key, template);
    return template;
  }
}

function expectedName({ id, node, placement }: ScalingMachine): string {
  return node?.name ?? placement?.name ?? `machine-${id}`;
}

function isMeasured(allocatable: Resources | undefined): allocatable is Resources {
  return allocatable !== undefined && allocatable.cpuMilli > 0 && allocatable.memoryBytes > 0;
}

/** Labels of a host's nodes that the pool does not override. */
export function topologyLabels(
  { labels }: PoolConfig,
  place: { readonly region: string; readonly host: string } | undefined,
): Readonly<Record<string, string>> {
  if (place === undefined) return {};
  return {
    ...(labels[REGION_LABEL] === undefined && { [REGION_LABEL]: place.region }),
    ...(labels[ZONE_LABEL] === undefined && { [ZONE_LABEL]: place.host }),
  };
}

export interface SizedTemplate {
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: Node['taints'];
  readonly allocatable: Resources;
}

/** The next node of the pool with a machine of this size, without name and place. */
export function sizedTemplate(
  { config, learned }: ScalingPool,
  size: MachineSize,
  { gpuLabel }: { readonly gpuLabel: string },
): SizedTemplate {
  const instanceType = config.instanceTypes.find((one) => sizeKey(one) === sizeKey(size))?.name;
  const pool = { ...config, size, instanceType };
  const template = templateNode(
    { id: config.name, pool },
    { gpuLabel, learned: learned[sizeKey(size)] },
  );
  const { [HOSTNAME_LABEL]: _, ...labels } = template.labels;
  const allocatable = parseResources(template.allocatable);
  // The template is made from numbers, so it is always valid.
  if (!allocatable.ok) throw new RangeError(`pool ${config.name}: ${allocatable.problem}`);
  return { labels, taints: template.taints, allocatable: allocatable.value };
}

/** The label that sizes of one pool differ in. */
export function sizeLabels(name: string | undefined): Readonly<Record<string, string>> {
  return name === undefined ? {} : { [INSTANCE_TYPE_LABEL]: name };
}
