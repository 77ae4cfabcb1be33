// SPDX-License-Identifier: Apache-2.0
// Generates rules about nodes: selectors, node affinity, tolerations, a node name, host ports.

import type { NodeSelectorTerm, Pod, Port, Requirement, Toleration } from '../objects.ts';
import type { Random } from '../random.ts';
import { HOSTNAME, RACK, RACKS, ZONE, ZONES } from './labels.ts';
import type { PodContext } from './volumes.ts';

export const NODE_LABELS: Readonly<Record<string, readonly string[]>> = {
  [ZONE]: ZONES,
  [RACK]: RACKS,
  disk: ['ssd', 'hdd'],
  [HOSTNAME]: ['n0', 'n1', 'n2', 'n3'],
};

export function addNodeSelector(random: Random, pod: Pod): void {
  const key = random.pick([ZONE, 'disk', RACK]);
  pod.spec.nodeSelector = { [key]: random.pick(NODE_LABELS[key] ?? []) };
}

export function nodeRequirement(random: Random): Requirement {
  if (random.chance(0.2))
    return {
      key: 'cores',
      operator: random.pick(['Gt', 'Lt']),
      values: [random.pick(['4', '7', '9'])],
    };
  const key = random.pick([ZONE, 'disk', RACK, HOSTNAME, 'absent']);
  const operator = random.pick(['In', 'In', 'NotIn', 'Exists', 'DoesNotExist']);
  const requirement: Requirement = { key, operator };
  if (operator === 'In' || operator === 'NotIn')
    requirement.values = random.some(NODE_LABELS[key] ?? ['x'], 0.5);
  return requirement;
}

// An empty term is valid and matches nothing.
function nodeTerm(random: Random): NodeSelectorTerm {
  const term: NodeSelectorTerm = {};
  if (random.chance(0.03)) return term;
  if (random.chance(0.9))
    term.matchExpressions = random.times(random.int(1, 2), () => nodeRequirement(random));
  if (random.chance(0.1))
    term.matchFields = [
      {
        key: 'metadata.name',
        operator: random.pick(['In', 'NotIn']),
        values: [random.pick(['n0', 'n1', 'n2'])],
      },
    ];
  return term;
}

export function addNodeAffinity(random: Random, pod: Pod): void {
  pod.spec.affinity = {
    ...pod.spec.affinity,
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: random.times(random.int(1, 2), () => nodeTerm(random)),
      },
    },
  };
}

const TOLERATIONS: readonly Toleration[] = [
  { key: 'dedicated', operator: 'Equal', value: 'db', effect: 'NoSchedule' },
  { key: 'dedicated', operator: 'Exists' },
  { key: 'dedicated', value: 'gpu', effect: 'NoSchedule' },
  { key: 'spot', operator: 'Exists', effect: 'NoExecute' },
  { key: 'spot', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/unschedulable', operator: 'Equal', value: '' },
  { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
  { operator: 'Exists' },
  { operator: 'Exists', effect: 'NoSchedule' },
];

/** Compared only with the feature gate TaintTolerationComparisonOperators. */
const COMPARISONS: readonly Toleration[] = [
  { key: 'load', operator: 'Lt', value: '50', effect: 'NoSchedule' },
  { key: 'load', operator: 'Gt', value: '5' },
  { key: 'load', operator: 'Gt', value: '-3' },
  { key: 'load', operator: 'Lt', value: '060' },
];

export function addTolerations(random: Random, pod: Pod): void {
  pod.spec.tolerations = random.some(TOLERATIONS, 0.3);
}

/** For a node that has the taint. */
export function addComparison({ random, cluster, pod }: PodContext): void {
  const taint = { key: 'load', value: random.pick(['5', '60', 'high']), effect: 'NoSchedule' };
  random.pick(cluster.nodes).spec.taints ??= [taint];
  pod.spec.tolerations = [...(pod.spec.tolerations ?? []), random.pick(COMPARISONS)];
}

/** Needs a feature that only some nodes declare. */
export function addNodeFeature(random: Random, pod: Pod): void {
  if (random.chance(0.5)) {
    pod.spec.hostNetwork = true;
    pod.spec.hostUsers = random.chance(0.2);
    return;
  }
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  random.pick(all).restartPolicyRules = [
    {
      action: random.chance(0.8) ? 'RestartAllContainers' : 'Restart',
      exitCodes: { operator: 'In', values: [1] },
    },
  ];
}

export function addNodeName(random: Random, pod: Pod): void {
  pod.spec.nodeName = random.pick(['n0', 'n1', 'n2', 'n3']);
}

function hostPort(random: Random): Port {
  const port: Port = { containerPort: 80, hostPort: random.pick([80, 443]) };
  if (random.chance(0.6)) port.protocol = random.pick(['TCP', 'TCP', 'UDP', 'SCTP']);
  if (random.chance(0.45)) port.hostIP = random.pick(['0.0.0.0', '10.0.0.1', '10.0.0.2', '::', '']);
  return port;
}

/** On a container, a sidecar, or an init container, where it does not count. */
export function addHostPorts(random: Random, pod: Pod): void {
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  random.pick(all).ports = random.times(random.int(1, 2), () => hostPort(random));
}
