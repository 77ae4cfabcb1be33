// SPDX-License-Identifier: Apache-2.0
// Filters that depend on the node only, not on its pods. Their results never change during a simulation.

import { matchesNode } from '../../model/node-selector.ts';
import { type Taint, tolerates } from '../../model/taints.ts';
import type { Filter } from './filter.ts';

const CORDON: Taint = {
  key: 'node.kubernetes.io/unschedulable',
  value: '',
  effect: 'NoSchedule',
};

/** A pod that tolerates the cordon's taint also tolerates the cordon. */
export const nodeUnschedulable: Filter = ({ pod }, { node }) => {
  if (!node.isUnschedulable) return undefined;
  const isTolerated = pod.tolerations.some((toleration) => tolerates(toleration, CORDON));
  return isTolerated ? undefined : { filter: 'NodeUnschedulable' };
};

export const nodeName: Filter = ({ pod }, { node }) =>
  pod.nodeName === '' || pod.nodeName === node.name
    ? undefined
    : { filter: 'NodeName', required: pod.nodeName };

export const taintToleration: Filter = ({ pod }, { node }, cluster) => {
  const taint = cluster.findUntoleratedTaint(pod, node);
  return taint === undefined ? undefined : { filter: 'TaintToleration', taint };
};

export const nodeDeclaredFeatures: Filter = ({ pod }, { node }, { featureGates }) => {
  if (!featureGates.NodeDeclaredFeatures) return undefined;
  const missing = pod.requiredFeatures.filter((name) => !node.declaredFeatures.includes(name));
  return missing.length === 0 ? undefined : { filter: 'NodeDeclaredFeatures', missing };
};

/** Refuses pods with claims for devices: the simulation knows no devices. */
export const dynamicResources: Filter = ({ pod: { resourceClaims } }) =>
  resourceClaims.length === 0
    ? undefined
    : { filter: 'DynamicResources', problem: 'claims-not-supported', claims: resourceClaims };

export const nodeAffinity: Filter = ({ pod }, { node }) => {
  const missing = Object.entries(pod.nodeSelector).filter(
    ([key, value]) => !Object.hasOwn(node.labels, key) || node.labels[key] !== value,
  );
  if (missing.length > 0) {
    return { filter: 'NodeAffinity', part: 'selector', missing: Object.fromEntries(missing) };
  }
  if (pod.nodeAffinity === undefined || matchesNode(pod.nodeAffinity, node)) return undefined;
  return { filter: 'NodeAffinity', part: 'affinity', missing: {} };
};
