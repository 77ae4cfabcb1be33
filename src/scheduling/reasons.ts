// SPDX-License-Identifier: Apache-2.0
// Why a pod cannot run on a node, as data: the filter that says no, and the numbers behind it.

import type { HostPort } from '../model/host-port.ts';
import type { InTreeDisk } from '../model/in-tree-disk.ts';
import type { Taint } from '../model/taints.ts';

export const FILTERS = [
  'NodeUnschedulable',
  'NodeName',
  'TaintToleration',
  'NodeAffinity',
  'NodePorts',
  'NodeResourcesFit',
  'VolumeRestrictions',
  'NodeVolumeLimits',
  'VolumeBinding',
  'VolumeZone',
  'PodTopologySpread',
  'InterPodAffinity',
] as const;

/** Named as kube-scheduler names its plugins. */
export type FilterName = (typeof FILTERS)[number];

export interface ResourceShortfall {
  /** The resource's Kubernetes name. */
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly allocatable: number;
}

/** What is wrong with a claim or its volume, whichever filter notices. */
export type ClaimProblem =
  | 'claim-not-found'
  | 'claim-of-another-pod'
  | 'claim-lost'
  | 'claim-terminating'
  | 'claim-unbound'
  | 'claim-without-class'
  | 'class-not-found'
  | 'class-without-binding-mode'
  | 'volume-not-found';

export type Reason =
  | { readonly filter: 'NodeUnschedulable' }
  | { readonly filter: 'NodeName'; readonly wanted: string }
  | { readonly filter: 'TaintToleration'; readonly taint: Taint }
  | {
      readonly filter: 'NodeAffinity';
      /** `selector`: labels that the node lacks; `affinity`: none of the terms holds. */
      readonly part: 'selector' | 'affinity';
      readonly missing: Readonly<Record<string, string>>;
    }
  | { readonly filter: 'NodePorts'; readonly port: HostPort }
  | { readonly filter: 'NodeResourcesFit'; readonly shortfalls: readonly ResourceShortfall[] }
  | {
      readonly filter: 'VolumeRestrictions';
      readonly problem: 'claim-in-use' | 'claim-not-found';
      readonly claim: string;
    }
  | {
      readonly filter: 'VolumeRestrictions';
      readonly problem: 'disk-in-use';
      readonly disk: InTreeDisk;
    }
  | {
      readonly filter: 'NodeVolumeLimits';
      readonly problem: 'too-many';
      readonly driver: string;
      readonly attached: number;
      readonly adding: number;
      readonly limit: number;
    }
  | {
      readonly filter: 'NodeVolumeLimits' | 'VolumeBinding' | 'VolumeZone';
      readonly problem: ClaimProblem;
      readonly claim: string;
    }
  | {
      readonly filter: 'VolumeBinding';
      readonly problem: 'node-conflict' | 'other-node-selected' | 'no-volume' | 'no-space';
      readonly claim: string;
    }
  | {
      readonly filter: 'VolumeZone';
      readonly problem: 'other-zone';
      readonly volume: string;
      readonly topologyKey: string;
      readonly wanted: readonly string[];
    }
  | {
      readonly filter: 'PodTopologySpread';
      readonly problem: 'label-missing';
      readonly topologyKey: string;
    }
  | {
      readonly filter: 'PodTopologySpread';
      readonly problem: 'skew';
      readonly topologyKey: string;
      readonly domain: string;
      /** Matching pods in the node's domain, and in the emptiest one. */
      readonly matching: number;
      readonly minimum: number;
      /** 1 when the pod itself matches. */
      readonly self: number;
      readonly maxSkew: number;
    }
  | {
      readonly filter: 'InterPodAffinity';
      readonly problem: 'label-missing' | 'nobody-there';
      readonly topologyKey: string;
    }
  | {
      readonly filter: 'InterPodAffinity';
      /** `refuses`: the pod's own anti-affinity; `refused-by`: that of pods already there. */
      readonly problem: 'refuses' | 'refused-by';
      readonly topologyKey: string;
      readonly domain: string;
      readonly pods: number;
    };

export type Verdict =
  | { readonly fits: true }
  | { readonly fits: false; readonly reasons: readonly Reason[] };

const OF_THE_POD: ReadonlySet<string> = new Set<ClaimProblem | 'claim-in-use'>([
  'claim-in-use',
  'claim-not-found',
  'claim-of-another-pod',
  'claim-lost',
  'claim-terminating',
  'claim-unbound',
  'claim-without-class',
  'class-not-found',
  'class-without-binding-mode',
]);

/** Whether the reason lies in the pod and its claims, so that no node at all will do. */
export function rejectsEverywhere(reason: Reason): boolean {
  return 'problem' in reason && OF_THE_POD.has(reason.problem);
}
