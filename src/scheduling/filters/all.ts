// SPDX-License-Identifier: Apache-2.0
// All filters, in the order in which the scheduler asks them. It stops at the first no; here all are asked,
// since a person wants to know everything that stands in the way.

import type { FilterName, Reason } from '../reasons.ts';
import type { Candidate } from '../state/candidate.ts';
import type { Slot } from '../state/slot.ts';
import type { World } from '../state/world.ts';
import type { Filter } from './filter.ts';
import { nodePorts } from './node-ports.ts';
import { nodeResourcesFit } from './node-resources.ts';
import { nodeAffinity, nodeName, nodeUnschedulable, taintToleration } from './node-rules.ts';
import { interPodAffinity, podAffinity, podAntiAffinity } from './pod-affinity.ts';
import { podTopologySpread } from './topology-spread.ts';
import { volumeBinding } from './volume-binding.ts';
import { nodeVolumeLimits } from './volume-limits.ts';
import { volumeRestrictions } from './volume-restrictions.ts';
import { volumeZone } from './volume-zone.ts';

const FILTERS: Readonly<Record<FilterName, Filter>> = {
  NodeUnschedulable: nodeUnschedulable,
  NodeName: nodeName,
  TaintToleration: taintToleration,
  NodeAffinity: nodeAffinity,
  NodePorts: nodePorts,
  NodeResourcesFit: nodeResourcesFit,
  VolumeRestrictions: volumeRestrictions,
  NodeVolumeLimits: nodeVolumeLimits,
  VolumeBinding: volumeBinding,
  VolumeZone: volumeZone,
  PodTopologySpread: podTopologySpread,
  InterPodAffinity: interPodAffinity,
};
const ALL: readonly Filter[] = Object.values(FILTERS);

/** Depend on the node and the pod alone. */
const NODE_RULES: readonly Filter[] = [nodeUnschedulable, nodeName, taintToleration, nodeAffinity];

/** Depend on what runs there; once they say no, more pods do not change it. */
const LASTING: readonly Filter[] = [
  podAntiAffinity,
  nodePorts,
  volumeRestrictions,
  nodeVolumeLimits,
  volumeBinding,
  volumeZone,
];

/** Depend on what runs elsewhere too: a pod placed there may turn a no into a yes. */
const PASSING: readonly Filter[] = [podTopologySpread, podAffinity];

export function allReasons(candidate: Candidate, slot: Slot, world: World): readonly Reason[] {
  return ALL.flatMap((filter) => filter(candidate, slot, world) ?? []);
}

export function passesNodeRules(candidate: Candidate, slot: Slot, world: World): boolean {
  return NODE_RULES.every((filter) => filter(candidate, slot, world) === undefined);
}

/** Room aside. */
export function isBarred(candidate: Candidate, slot: Slot, world: World): boolean {
  return LASTING.some((filter) => filter(candidate, slot, world) !== undefined);
}

export function mustWait(candidate: Candidate, slot: Slot, world: World): boolean {
  return PASSING.some((filter) => filter(candidate, slot, world) !== undefined);
}
