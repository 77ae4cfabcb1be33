// SPDX-License-Identifier: Apache-2.0
// Formats a reason for people: one clause with its numbers, without the pod and the node.

import { formatLabels } from '../model/labels.ts';
import { formatAmount, isByteResource } from '../model/resources.ts';
import { formatTaint } from '../model/taints.ts';
import type { FilterName, FilterReason, ResourceShortfall } from './reasons.ts';

type ReasonOf<F extends FilterReason['filter']> = Extract<FilterReason, { readonly filter: F }>;

const VOLUME_FILTERS = [
  'VolumeRestrictions',
  'NodeVolumeLimits',
  'VolumeBinding',
  'VolumeZone',
] as const satisfies readonly FilterName[];

type VolumeReason = ReasonOf<(typeof VOLUME_FILTERS)[number]>;

function isVolumeReason(reason: FilterReason): reason is VolumeReason {
  return VOLUME_FILTERS.some((filter) => filter === reason.filter);
}

const NODE_RULES = [
  'NodeUnschedulable',
  'NodeName',
  'TaintToleration',
  'NodeAffinity',
  'NodeDeclaredFeatures',
] as const satisfies readonly FilterName[];

type NodeRuleReason = ReasonOf<(typeof NODE_RULES)[number]>;

function isNodeRuleReason(reason: FilterReason): reason is NodeRuleReason {
  return NODE_RULES.some((filter) => filter === reason.filter);
}

export function formatReason(reason: FilterReason): string {
  if (isVolumeReason(reason)) return formatVolumeReason(reason);
  if (isNodeRuleReason(reason)) return formatNodeRule(reason);
  switch (reason.filter) {
    case 'DynamicResources':
      return `resource claims ${reason.claims.join(', ')} are not supported: devices are not simulated`;
    case 'NodePorts':
      return `host port ${reason.port.port}/${reason.port.protocol} is in use`;
    case 'NodeResourcesFit':
      return reason.shortfalls.map(formatShortfall).join(', ');
    case 'PodTopologySpread':
      return formatSpread(reason);
    case 'InterPodAffinity':
      return formatPodAffinity(reason);
  }
}

function formatNodeRule(reason: NodeRuleReason): string {
  switch (reason.filter) {
    case 'NodeUnschedulable':
      return 'the node is cordoned';
    case 'NodeName':
      return `the pod requires node ${reason.required}`;
    case 'TaintToleration':
      return `taint ${formatTaint(reason.taint)} is not tolerated`;
    case 'NodeAffinity':
      return formatNodeAffinity(reason);
    case 'NodeDeclaredFeatures':
      return `the node does not declare ${reason.missing.join(', ')}`;
  }
}

function formatNodeAffinity({ part, missing }: ReasonOf<'NodeAffinity'>): string {
  return part === 'selector'
    ? `labels ${formatLabels(missing)} are missing`
    : 'no term of the node affinity matches';
}

function formatShortfall({ resource, requested, used, allocatable }: ResourceShortfall): string {
  const amount = (value: number): string => formatAmount(resource, value);
  // Measured amounts are rounded: what is free never looks larger than it is.
  const isBytes = isByteResource(resource);
  const inUse = isBytes ? roundToMebibytes(used, Math.ceil) : used;
  const total = isBytes ? roundToMebibytes(allocatable, Math.floor) : allocatable;
  return `${resource}: ${amount(requested)} requested, ${amount(inUse)} of ${amount(total)} used`;
}

const MEBIBYTE = 2 ** 20;

function roundToMebibytes(bytes: number, round: (value: number) => number): number {
  return round(bytes / MEBIBYTE) * MEBIBYTE;
}

function formatSpread(reason: ReasonOf<'PodTopologySpread'>): string {
  const { topologyKey } = reason;
  if (reason.problem === 'label-missing')
    return `label ${topologyKey} is missing, which the topology spread needs`;
  const { domain, matching, self, minimum, maxSkew } = reason;
  return (
    `${topologyKey} ${domain} would have ${matching + self} matching pods, ` +
    `the domain with the fewest has ${minimum}, maxSkew is ${maxSkew}`
  );
}

function formatPodAffinity(reason: ReasonOf<'InterPodAffinity'>): string {
  const { topologyKey } = reason;
  switch (reason.problem) {
    case 'label-missing':
      return `label ${topologyKey} is missing, which the pod affinity needs`;
    case 'no-matching-pod':
      return `no pod that its affinity requires is in the same ${topologyKey}`;
    case 'own-anti-affinity':
      return `its anti-affinity excludes ${reason.pods} pods in ${topologyKey} ${reason.domain}`;
    case 'existing-anti-affinity':
      return `the anti-affinity of ${reason.pods} pods in ${topologyKey} ${reason.domain} excludes it`;
  }
}

const CLAIM_TEXTS: Readonly<Record<Extract<VolumeReason, { claim: string }>['problem'], string>> = {
  'claim-in-use': 'is in use by another pod',
  'claim-not-found': 'does not exist',
  'claim-of-another-pod': 'belongs to another pod',
  'claim-lost': 'has lost its volume',
  'claim-terminating': 'is being deleted',
  'claim-unbound': 'is not bound',
  'claim-without-class': 'has neither a volume nor a storage class',
  'class-not-found': 'has a storage class that does not exist',
  'class-without-binding-mode': 'has a storage class without a binding mode',
  'volume-not-found': 'is bound to a volume that does not exist',
  'node-conflict': 'has a volume that the node cannot reach',
  'other-node-selected': 'is being provisioned for another node',
  'no-volume': 'matches no volume on this node and none can be provisioned',
  'no-space': 'is larger than the free storage capacity',
};

function formatVolumeReason(reason: VolumeReason): string {
  if ('claim' in reason) return `claim ${reason.claim} ${CLAIM_TEXTS[reason.problem]}`;
  switch (reason.problem) {
    case 'disk-in-use':
      return `disk ${reason.disk.id} is in use on the node`;
    case 'too-many':
      return (
        `${reason.driver} has ${reason.attached} of ${reason.limit} volumes attached, ` +
        `${reason.adding} more needed`
      );
    case 'other-zone':
      return `volume ${reason.volume} requires ${reason.topologyKey} ${reason.required.join(', ')}`;
  }
}
