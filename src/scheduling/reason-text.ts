// SPDX-License-Identifier: Apache-2.0
// A reason as a person reads it: one clause, with its numbers, without the pod and the node.

import { formatLabels } from '../model/labels.ts';
import { formatAmount } from '../model/resources.ts';
import { formatTaint } from '../model/taints.ts';
import type { ClaimProblem, Reason, ResourceShortfall } from './reasons.ts';

type OfFilter<F extends Reason['filter']> = Extract<Reason, { readonly filter: F }>;

export function reasonText(reason: Reason): string {
  switch (reason.filter) {
    case 'NodeUnschedulable':
      return 'the node is cordoned';
    case 'NodeName':
      return `the pod wants node ${reason.wanted}`;
    case 'TaintToleration':
      return `taint ${formatTaint(reason.taint)} is not tolerated`;
    case 'NodeAffinity':
      return affinityText(reason);
    case 'NodePorts':
      return `host port ${reason.port.port}/${reason.port.protocol} is taken`;
    case 'NodeResourcesFit':
      return reason.shortfalls.map(shortfallText).join(', ');
    case 'PodTopologySpread':
      return spreadText(reason);
    case 'InterPodAffinity':
      return nearbyText(reason);
    default:
      return volumeText(reason);
  }
}

function affinityText({ part, missing }: OfFilter<'NodeAffinity'>): string {
  return part === 'selector'
    ? `labels ${formatLabels(missing)} are missing`
    : 'no term of the node affinity holds';
}

function shortfallText({ resource, requested, used, allocatable }: ResourceShortfall): string {
  const amount = (value: number): string => formatAmount(resource, value);
  return `${resource}: ${amount(requested)} asked for, ${amount(used)} of ${amount(allocatable)} used`;
}

function spreadText(reason: OfFilter<'PodTopologySpread'>): string {
  const { topologyKey } = reason;
  if (reason.problem === 'label-missing')
    return `label ${topologyKey} is missing, needed to spread`;
  const { domain, matching, self, minimum, maxSkew } = reason;
  return (
    `${topologyKey} ${domain} would have ${matching + self} matching pods, ` +
    `the emptiest has ${minimum}, at most ${maxSkew} more are allowed`
  );
}

function nearbyText(reason: OfFilter<'InterPodAffinity'>): string {
  const { topologyKey } = reason;
  switch (reason.problem) {
    case 'label-missing':
      return `label ${topologyKey} is missing, needed for affinity`;
    case 'nobody-there':
      return `no pod that it wants near is in the same ${topologyKey}`;
    case 'refuses':
      return `${reason.pods} pods that it refuses are in ${topologyKey} ${reason.domain}`;
    case 'refused-by':
      return `${reason.pods} pods in ${topologyKey} ${reason.domain} refuse it`;
  }
}

const CLAIM_TEXTS: Readonly<Record<ClaimProblem | 'claim-in-use', string>> = {
  'claim-in-use': 'is in use by another pod',
  'claim-not-found': 'does not exist',
  'claim-of-another-pod': 'belongs to another pod',
  'claim-lost': 'has lost its volume',
  'claim-terminating': 'is being deleted',
  'claim-unbound': 'is not bound',
  'claim-without-class': 'has neither a volume nor a storage class',
  'class-not-found': 'is of a storage class that does not exist',
  'class-without-binding-mode': 'is of a storage class without a binding mode',
  'volume-not-found': 'is bound to a volume that does not exist',
};

const PLACE_TEXTS = {
  'node-conflict': 'has a volume that the node cannot reach',
  'other-node-selected': 'is being provisioned for another node',
  'no-volume': 'finds no volume here and none can be made',
  'no-space': 'is larger than the space that is left',
} as const;

type VolumeReason = OfFilter<
  'VolumeRestrictions' | 'NodeVolumeLimits' | 'VolumeBinding' | 'VolumeZone'
>;

function volumeText(reason: VolumeReason): string {
  switch (reason.problem) {
    case 'disk-in-use':
      return `disk ${reason.disk.id} is in use on the node`;
    case 'too-many':
      return (
        `${reason.driver} has ${reason.attached} of ${reason.limit} volumes attached, ` +
        `${reason.adding} more asked for`
      );
    case 'other-zone':
      return `volume ${reason.volume} is in ${reason.topologyKey} ${reason.wanted.join(', ')}`;
    case 'node-conflict':
    case 'other-node-selected':
    case 'no-volume':
    case 'no-space':
      return `claim ${reason.claim} ${PLACE_TEXTS[reason.problem]}`;
    default:
      return `claim ${reason.claim} ${CLAIM_TEXTS[reason.problem]}`;
  }
}
