// SPDX-License-Identifier: Apache-2.0
// Objects of the Kubernetes API, limited to the fields that are read here.

export interface ObjectMeta {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly creationTimestamp?: string | null;
  readonly deletionTimestamp?: string | null;
  readonly labels?: Readonly<Record<string, string>> | null;
  readonly annotations?: Readonly<Record<string, string>> | null;
  readonly managedFields?: readonly ManagedFieldsEntry[] | null;
}

/** Which field manager set which fields last, and by which operation. */
interface ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
  readonly fieldsV1?: unknown;
}

export interface ApiObject {
  readonly metadata: ObjectMeta;
}

export interface ApiList<T> {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly T[] | null;
}

interface NodeCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string | null;
}

export interface NodeObject extends ApiObject {
  readonly spec?: {
    readonly providerID?: string;
    readonly unschedulable?: boolean;
    readonly taints?: readonly TaintObject[] | null;
  };
  readonly status?: {
    readonly capacity?: Readonly<Record<string, string>> | null;
    readonly allocatable?: Readonly<Record<string, string>> | null;
    readonly conditions?: readonly NodeCondition[] | null;
    readonly addresses?: readonly { readonly type: string; readonly address: string }[] | null;
    readonly nodeInfo?: { readonly systemUUID?: string };
    readonly declaredFeatures?: readonly string[] | null;
  };
}

export interface TaintObject {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
  readonly timeAdded?: string | null;
}

export interface VolumeAttachmentObject extends ApiObject {
  readonly spec?: {
    readonly nodeName?: string;
    readonly source?: { readonly persistentVolumeName?: string };
  };
}

export interface ClaimObject extends ApiObject {
  readonly spec?: { readonly volumeName?: string };
}

export interface LeaseObject extends ApiObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly leaseTransitions?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
  };
}

/** Format of MicroTime fields: six digits after the second. */
export function formatMicroTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}
