// SPDX-License-Identifier: Apache-2.0
// Filters that look at the node alone, not at what runs on it: their answers never change in a what-if.

import { matchesNode } from '../../model/node-selector.ts';
import { findUntolerated, type Taint, tolerates } from '../../model/taints.ts';
import type { Filter } from './filter.ts';

const CORDON: Taint = {
  key: 'node.kubernetes.io/unschedulable',
  value: '',
  effect: 'NoSchedule',
};

/** Who tolerates the taint that comes with a cordon also bears the cordon itself. */
export const nodeUnschedulable: Filter = ({ pod }, { node }) => {
  if (!node.isUnschedulable) return undefined;
  const isBorne = pod.tolerations.some((toleration) => tolerates(toleration, CORDON));
  return isBorne ? undefined : { filter: 'NodeUnschedulable' };
};

export const nodeName: Filter = ({ pod }, { node }) =>
  pod.nodeName === '' || pod.nodeName === node.name
    ? undefined
    : { filter: 'NodeName', wanted: pod.nodeName };

export const taintToleration: Filter = ({ pod }, { node }) => {
  const taint = findUntolerated(node.taints, pod.tolerations);
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
