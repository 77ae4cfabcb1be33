// SPDX-License-Identifier: Apache-2.0
// The node that a pool would make next, for schedulers that have to decide before one is there.
import { STARTUP_TAINT } from '../../bootstrap/index.ts';
import type { LearnedAllocatable } from '../../model/pool.ts';
import type { GroupSettings } from '../settings.ts';
import { capacityOf, type Offer, offerOf } from './allocatable.ts';
import type { NodeTemplate } from './encode-node.ts';

/** What does not depend on the pool alone. */
interface Place {
  /** Undefined where there are several. */
  readonly region: string | undefined;
  readonly gpuLabel: string;
}

export function templateNode(
  group: GroupSettings,
  { region, gpuLabel }: Place,
  learned: LearnedAllocatable | undefined,
): NodeTemplate {
  const labels = templateLabels(group, { region, gpuLabel });
  const whole = capacityOf(group);
  const offer = offerOf(group, learned);
  const others = extendedResources(group);
  return {
    name: `template-of-${group.name}`,
    labels,
    // Taken away once the node is complete: pods will find it without.
    taints: group.taints.filter(({ key }) => key !== STARTUP_TAINT.key),
    capacity: { ...quantities(larger(whole, offer)), ...others },
    allocatable: { ...quantities(offer), ...others },
    architecture: group.architecture,
  };
}

export function templateLabels(
  { name, labels, groupLabel, architecture, instanceType, gpu, zone }: GroupSettings,
  { region, gpuLabel }: Place,
): Readonly<Record<string, string>> {
  return {
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': architecture,
    'kubernetes.io/hostname': `template-of-${name}`,
    ...(region !== undefined && { 'topology.kubernetes.io/region': region }),
    // The zone of a node is its host: unknown before, unless there is only one.
    ...(zone !== undefined && { 'topology.kubernetes.io/zone': zone }),
    ...(instanceType !== undefined && { 'node.kubernetes.io/instance-type': instanceType }),
    ...(gpu !== undefined && { [gpuLabel]: gpu.type }),
    ...labels,
    [groupLabel]: name,
  };
}

function extendedResources({
  gpu,
  extendedResources: others,
}: GroupSettings): Readonly<Record<string, string>> {
  return {
    ...Object.fromEntries(Object.entries(others).map(([name, count]) => [name, String(count)])),
    ...(gpu !== undefined && { [gpu.resource]: String(gpu.count) }),
  };
}

function quantities(offer: Offer): Readonly<Record<string, string>> {
  return {
    cpu: `${offer.cpuMilli}m`,
    memory: `${Math.floor(offer.memoryBytes / 1_024)}Ki`,
    'ephemeral-storage': String(offer.ephemeralStorageBytes),
    pods: String(offer.pods),
  };
}

/** Nodes that offer more than the VM's size promised show that the promise was too small. */
function larger(whole: Offer, offer: Offer): Offer {
  return {
    cpuMilli: Math.max(whole.cpuMilli, offer.cpuMilli),
    memoryBytes: Math.max(whole.memoryBytes, offer.memoryBytes),
    ephemeralStorageBytes: Math.max(whole.ephemeralStorageBytes, offer.ephemeralStorageBytes),
    pods: Math.max(whole.pods, offer.pods),
  };
}
