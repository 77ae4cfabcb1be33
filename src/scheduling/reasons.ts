// SPDX-License-Identifier: Apache-2.0
// Why a pod cannot run on a node, as data: the rejecting filter and its numbers.

import type { HostPort } from '../model/host-port.ts';
import type { InTreeDisk } from '../model/in-tree-disk.ts';
import type { Taint } from '../model/taints.ts';

export const FILTER_NAMES = [
  'NodeUnschedulable',
  'NodeName',
  'TaintToleration',
  'NodeAffinity',
  'NodeDeclaredFeatures',
  'NodePorts',
  'DynamicResources',
  'NodeResourcesFit',
  'VolumeRestrictions',
  'NodeVolumeLimits',
  'VolumeBinding',
  'VolumeZone',
  'PodTopologySpread',
  'InterPodAffinity',
] as const;

/** The plugin names of kube-scheduler. */
export type FilterName = (typeof FILTER_NAMES)[number];

export interface ResourceShortfall {
  /** The resource's Kubernetes name. */
  readonly resource: string;
  readonly requested: number;
  readonly used: number;
  readonly allocatable: number;
}

/** What is wrong with a claim or its volume, whichever filter detects it. */
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

export type FilterReason =
  | { readonly filter: 'NodeUnschedulable' }
  | { readonly filter: 'NodeName'; readonly required: string }
  | { readonly filter: 'TaintToleration'; readonly taint: Taint }
  | {
      readonly filter: 'NodeAffinity';
      /** `selector`: the node lacks labels. `affinity`: no term matches. */
      readonly part: 'selector' | 'affinity';
      readonly missing: Readonly<Record<string, string>>;
    }
  | { readonly filter: 'NodeDeclaredFeatures'; readonly missing: readonly string[] }
  | {
      readonly filter: 'DynamicResources';
      /** Devices are not simulated, so it is not known whether the claims can be met. */
      readonly problem: 'claims-not-supported';
      readonly claims: readonly string[];
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
      readonly required: readonly string[];
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
      /** Matching pods in the node's domain, and in the domain with the fewest. */
      readonly matching: number;
      readonly minimum: number;
      /** 1 if the pod itself matches. */
      readonly self: number;
      readonly maxSkew: number;
    }
  | {
      readonly filter: 'InterPodAffinity';
      readonly problem: 'label-missing' | 'no-matching-pod';
      readonly topologyKey: string;
    }
  | {
      readonly filter: 'InterPodAffinity';
      /** `own-anti-affinity`: of the pod. `existing-anti-affinity`: of pods that are already placed. */
      readonly problem: 'own-anti-affinity' | 'existing-anti-affinity';
      readonly topologyKey: string;
      readonly domain: string;
      readonly pods: number;
    };

export type FitResult =
  | { readonly fits: true }
  | { readonly fits: false; readonly reasons: readonly FilterReason[] };

const POD_PROBLEMS: ReadonlySet<string> = new Set<
  ClaimProblem | 'claim-in-use' | 'claims-not-supported'
>([
  'claims-not-supported',
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

/** Whether the reason is in the pod or its claims, so that every node is rejected. */
export function rejectsEverywhere(reason: FilterReason): boolean {
  return 'problem' in reason && POD_PROBLEMS.has(reason.problem);
}
