// SPDX-License-Identifier: Apache-2.0
// The node that the next machine of a pool will become, for schedulers that decide before it exists.
import { STARTUP_TAINT } from '../bootstrap/index.ts';
import type { PoolConfig } from '../config/types/index.ts';
import type { LearnedAllocatable } from '../model/pool.ts';
import type { Taint } from '../model/taints.ts';
import type { NodeGroup } from './node-groups.ts';
import { expectedAllocatable, expectedCapacity, type NodeResources } from './resources.ts';

export interface TemplateNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  /** Quantities in Kubernetes' notation. */
  readonly capacity: Readonly<Record<string, string>>;
  readonly allocatable: Readonly<Record<string, string>>;
  readonly architecture: string;
}

export const INSTANCE_TYPE_LABEL = 'node.kubernetes.io/instance-type';

interface TemplateOptions {
  readonly gpuLabel: string;
  readonly learned: LearnedAllocatable | undefined;
}

export function templateNode(
  { id, pool }: Pick<NodeGroup, 'id' | 'pool'>,
  { gpuLabel, learned }: TemplateOptions,
): TemplateNode {
  const allocatable = expectedAllocatable(pool, learned);
  const extended = extendedResources(pool);
  return {
    name: `template-of-${id}`,
    labels: { ...templateLabels(pool, gpuLabel), 'kubernetes.io/hostname': `template-of-${id}` },
    // The startup taint is removed once the node is complete, before pods are scheduled.
    taints: pool.taints.filter(({ key }) => key !== STARTUP_TAINT.key),
    capacity: { ...quantities(maxResources(expectedCapacity(pool), allocatable)), ...extended },
    allocatable: { ...quantities(allocatable), ...extended },
    architecture: pool.architecture,
  };
}

function templateLabels(
  { name, regions, labels, groupLabel, architecture, instanceType, gpu, zone }: PoolConfig,
  gpuLabel: string,
): Readonly<Record<string, string>> {
  // With several regions, the region is chosen when the machine is placed.
  const region = regions.length === 1 ? regions[0] : undefined;
  return {
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': architecture,
    ...(region !== undefined && { 'topology.kubernetes.io/region': region }),
    // The zone of a node is its host: unknown in advance, unless there is only one.
    ...(zone !== undefined && { 'topology.kubernetes.io/zone': zone }),
    ...(instanceType !== undefined && { [INSTANCE_TYPE_LABEL]: instanceType }),
    ...(gpu !== undefined && { [gpuLabel]: gpu.type }),
    ...labels,
    [groupLabel]: name,
  };
}

function extendedResources({
  gpu,
  extendedResources: others,
}: PoolConfig): Readonly<Record<string, string>> {
  return {
    ...Object.fromEntries(Object.entries(others).map(([name, count]) => [name, String(count)])),
    ...(gpu !== undefined && { [gpu.resource]: String(gpu.count) }),
  };
}

function quantities(resources: NodeResources): Readonly<Record<string, string>> {
  return {
    cpu: `${resources.cpuMilli}m`,
    memory: `${Math.floor(resources.memoryBytes / 1_024)}Ki`,
    'ephemeral-storage': String(resources.ephemeralStorageBytes),
    pods: String(resources.pods),
  };
}

/** A node whose allocatable exceeds the computed capacity proves that the computed capacity is too small. */
function maxResources(left: NodeResources, right: NodeResources): NodeResources {
  return {
    cpuMilli: Math.max(left.cpuMilli, right.cpuMilli),
    memoryBytes: Math.max(left.memoryBytes, right.memoryBytes),
    ephemeralStorageBytes: Math.max(left.ephemeralStorageBytes, right.ephemeralStorageBytes),
    pods: Math.max(left.pods, right.pods),
  };
}
