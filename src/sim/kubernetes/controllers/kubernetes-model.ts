// SPDX-License-Identifier: Apache-2.0
// Pods and nodes as the model sees them. Objects never change, so each is converted once.
import { type Node, nodeFromKubernetes } from '../../../model/node.ts';
import { matchesNode, type NodeSelector } from '../../../model/node-selector.ts';
import type { Pod } from '../../../model/pod.ts';
import { podFromKubernetes } from '../../../model/pod-from-kubernetes.ts';
import type { SimObject } from '../storage/objects.ts';

const PODS = new WeakMap<SimObject, Pod>();
const NODES = new WeakMap<SimObject, Node>();

/** Undefined when a value is invalid. */
export function toPod(object: SimObject): Pod | undefined {
  const known = PODS.get(object);
  if (known !== undefined) return known;
  const parsed = podFromKubernetes(object);
  if (!parsed.ok) return undefined;
  PODS.set(object, parsed.value);
  return parsed.value;
}

/** Undefined when a value is invalid. */
export function toNode(object: SimObject): Node | undefined {
  const known = NODES.get(object);
  if (known !== undefined) return known;
  const parsed = nodeFromKubernetes(object);
  if (!parsed.ok) return undefined;
  NODES.set(object, parsed.value);
  return parsed.value;
}

/** The node selector and the required node affinity of a pod. */
export function matchesNodeRules(
  pod: { readonly nodeSelector: Pod['nodeSelector']; readonly nodeAffinity?: NodeSelector },
  node: Node,
): boolean {
  const isSelected = Object.entries(pod.nodeSelector).every(
    ([key, value]) => node.labels[key] === value,
  );
  return isSelected && (pod.nodeAffinity === undefined || matchesNode(pod.nodeAffinity, node));
}
