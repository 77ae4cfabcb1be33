// SPDX-License-Identifier: Apache-2.0
// Headroom of a pool as placeholder pods of the lowest priority: packing finds or makes space for them after all other
// pods, and a node that holds one is removed only when the placeholder fits elsewhere.

import type { Node } from '../model/node.ts';
import type { Pod } from '../model/pod.ts';
import { addResources, NO_RESOURCES, type Resources } from '../model/resources.ts';
import { type Snapshot, withExpectedNodes } from '../scheduling/index.ts';
import { sizedTemplate } from './expected-nodes.ts';
import type { ScalingInput, ScalingPool } from './input.ts';

const UID_PREFIX = 'headroom:';

export function isPlaceholder({ uid }: Pick<Pod, 'uid'>): boolean {
  return uid.startsWith(UID_PREFIX);
}

/**
 * The part of an empty machine that its placeholder requests. Less than all, since nodes of one size differ by a few MiB;
 * more than half, so that two never share a machine.
 */
const MACHINE_SHARE = 0.9;

export function placeholderPods(input: ScalingInput): readonly Pod[] {
  return input.pools.flatMap((pool) => {
    const { machines, cpu, memoryBytes } = pool.config.headroom;
    if (machines === 0 && cpu === 0 && memoryBytes === 0) return [];
    const empty = machines === 0 ? NO_RESOURCES : freeOfNextNode(pool, input);
    const perMachine = {
      ...NO_RESOURCES,
      cpuMilli: Math.floor(empty.cpuMilli * MACHINE_SHARE),
      memoryBytes: Math.floor(empty.memoryBytes * MACHINE_SHARE),
      pods: 1,
    };
    const requests = [
      ...Array.from({ length: machines }, () => perMachine),
      ...splitAmount(cpu, memoryBytes),
    ];
    return requests.map((one, index) => placeholder(pool, one, { index, input }));
  });
}

const GIB = 2 ** 30;

/** One part per vCPU, or per GiB without vCPUs: pods that are started later are small. */
function splitAmount(cpu: number, memoryBytes: number): readonly Resources[] {
  const parts = cpu > 0 ? cpu : Math.ceil(memoryBytes / GIB);
  return Array.from({ length: parts }, () => ({
    ...NO_RESOURCES,
    cpuMilli: cpu > 0 ? 1_000 : 0,
    memoryBytes: Math.ceil(memoryBytes / parts),
    pods: 1,
  }));
}

/** What the DaemonSets leave of the pool's next node. */
function freeOfNextNode(pool: ScalingPool, { snapshot, settings }: ScalingInput): Resources {
  const template = sizedTemplate(pool, pool.config.size, settings);
  const node: Node = {
    ...template,
    name: `next-of-${pool.config.name}`,
    isUnschedulable: false,
    declaredFeatures: [],
  };
  const used = usedOn(withExpectedNodes(snapshot, [node]), node.name);
  return {
    ...node.allocatable,
    cpuMilli: Math.max(0, node.allocatable.cpuMilli - used.cpuMilli),
    memoryBytes: Math.max(0, node.allocatable.memoryBytes - used.memoryBytes),
  };
}

function usedOn(snapshot: Snapshot, node: string): Resources {
  return snapshot
    .podsOn(node)
    .reduce((sum, { requests }) => addResources(sum, requests), NO_RESOURCES);
}

function placeholder(
  { config }: ScalingPool,
  requests: Resources,
  { index, input }: { readonly index: number; readonly input: ScalingInput },
): Pod {
  return {
    name: `headroom-${config.name}-${index}`,
    namespace: '',
    uid: `${UID_PREFIX}${config.name}:${index}`,
    labels: {},
    isMirror: false,
    createdAt: 0,
    nodeName: '',
    nominatedNodeName: '',
    isFinished: false,
    isTerminating: false,
    isGated: false,
    // The lowest that is not expendable.
    priority: input.settings.expendablePriority,
    requests,
    held: requests,
    tolerations: config.taints.map(({ key, value, effect }) => ({
      key,
      operator: 'Equal' as const,
      value,
      effect,
    })),
    nodeSelector: { [config.groupLabel]: config.name },
    preferredNodes: [],
    affinity: [],
    antiAffinity: [],
    spread: [],
    hostPorts: [],
    volumes: [],
    requiredFeatures: [],
    resourceClaims: [],
  };
}
