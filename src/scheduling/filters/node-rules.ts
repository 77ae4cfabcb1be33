// SPDX-License-Identifier: Apache-2.0
// Filters that depend on the node only, not on its pods. Their results never change during a simulation.

import { matchesNode } from '../../model/node-selector.ts';
import { findUntoleratedTaint, type Taint, tolerates } from '../../model/taints.ts';
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

export const taintToleration: Filter = ({ pod }, { node }) => {
  const taint = findUntoleratedTaint(node.taints, pod.tolerations);
  return taint === undefined ? undefined : { filter: 'TaintToleration', taint };
};

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
