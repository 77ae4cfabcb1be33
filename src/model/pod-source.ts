// SPDX-License-Identifier: Apache-2.0
// The fields of a Pod object of the Kubernetes API that decide where it can run.

import type { PortSource } from './host-port.ts';
import type { Labels } from './labels.ts';
import type { NodeSelectorTermSource } from './node-selector.ts';
import type { PodAffinityTermSource } from './pod-affinity.ts';
import type { PodVolumeSource } from './pod-volume.ts';
import type { TolerationSource } from './taints.ts';
import type { SpreadConstraintSource } from './topology-spread.ts';

/** Quantities by resource name. */
export type QuantityMap = Readonly<Record<string, string | number>>;

export interface ResourcesSource {
  readonly requests?: QuantityMap | null;
  /** Read only for pods that the API server has not defaulted yet. */
  readonly limits?: QuantityMap | null;
}

export interface ContainerSource {
  readonly name?: string | null;
  /** `Always` on an init container makes it a sidecar. */
  readonly restartPolicy?: string | null;
  readonly restartPolicyRules?: readonly { readonly action?: string | null }[] | null;
  readonly resources?: ResourcesSource | null;
  readonly ports?: readonly PortSource[] | null;
}

export interface ContainerStatusSource {
  readonly name: string;
  readonly allocatedResources?: QuantityMap | null;
  readonly resources?: { readonly requests?: QuantityMap | null } | null;
}

export interface PodSpecSource {
  readonly nodeName?: string | null;
  readonly priority?: number | null;
  readonly hostNetwork?: boolean | null;
  readonly hostUsers?: boolean | null;
  readonly schedulingGates?: readonly unknown[] | null;
  readonly containers?: readonly ContainerSource[] | null;
  readonly initContainers?: readonly ContainerSource[] | null;
  readonly overhead?: QuantityMap | null;
  /** For the pod as a whole. */
  readonly resources?: ResourcesSource | null;
  readonly tolerations?: readonly TolerationSource[] | null;
  readonly nodeSelector?: Labels | null;
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: {
        readonly nodeSelectorTerms?: readonly NodeSelectorTermSource[] | null;
      } | null;
      readonly preferredDuringSchedulingIgnoredDuringExecution?:
        | readonly { readonly weight: number; readonly preference: NodeSelectorTermSource }[]
        | null;
    } | null;
    readonly podAffinity?: PodAffinitySource | null;
    readonly podAntiAffinity?: PodAffinitySource | null;
  } | null;
  readonly topologySpreadConstraints?: readonly SpreadConstraintSource[] | null;
  readonly volumes?: readonly PodVolumeSource[] | null;
  readonly resourceClaims?: readonly { readonly name: string }[] | null;
}

export interface PodAffinitySource {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTermSource[] | null;
}

export interface PodStatusSource {
  readonly phase?: string | null;
  readonly nominatedNodeName?: string | null;
  readonly conditions?:
    | readonly { readonly type: string; readonly reason?: string | null }[]
    | null;
  readonly containerStatuses?: readonly ContainerStatusSource[] | null;
  readonly initContainerStatuses?: readonly ContainerStatusSource[] | null;
  readonly allocatedResources?: QuantityMap | null;
  readonly resources?: { readonly requests?: QuantityMap | null } | null;
}

export interface PodSource {
  readonly metadata: {
    readonly name?: string | null;
    readonly namespace?: string | null;
    readonly uid?: string | null;
    readonly labels?: Labels | null;
    readonly annotations?: Labels | null;
    readonly creationTimestamp?: string | null;
    readonly deletionTimestamp?: string | null;
    readonly ownerReferences?:
      | readonly {
          readonly kind: string;
          readonly name: string;
          readonly uid: string;
          readonly controller?: boolean | null;
        }[]
      | null;
  };
  readonly spec?: PodSpecSource | null;
  readonly status?: PodStatusSource | null;
}
