// SPDX-License-Identifier: Apache-2.0
// An intent is a request to the fleet. A front end records it in one atomic write before it returns; the driver
// carries it out. The intent contains the machine ids, so that carrying it out twice creates nothing twice.

import type { HostRef, MachineId, MachineSize } from './machine.ts';
import type { VmRequest } from './role.ts';

/** Requester of the standalone autoscaler. Its drains are simulated again before the first eviction. */
export const AUTOSCALER = 'autoscaler';

interface IntentCommon {
  readonly id: string;
  /** Name of the pool; `role:<role>` for hand-made VMs. */
  readonly pool: string;
  readonly requestedAt: number;
  /** The requester: `cluster-autoscaler`, `autoscaler`, `cli`, `minimum`. */
  readonly requestedBy: string;
  /** Why it was requested, in one sentence. */
  readonly reason: string;
  /** `done`: every machine it names has a record that reflects the request. The intent has no further effect. */
  readonly state: 'open' | 'done';
}

export interface CreateIntent extends IntentCommon {
  readonly kind: 'create';
  readonly machines: readonly MachineId[];
  readonly size: MachineSize;
  /** The only host that the machines may be placed on; absent: any host of the pool. */
  readonly host?: HostRef;
  /** For hand-made VMs. */
  readonly vm?: VmRequest;
  /** See `Machine.isSelftest`. */
  readonly isSelftest?: boolean;
}

export interface DeleteIntent extends IntentCommon {
  readonly kind: 'delete';
  readonly machines: readonly MachineId[];
}

/** Drains the machines' Nodes, then deletes the machines. Machines without a Node are deleted at once. */
export interface DrainIntent extends IntentCommon {
  readonly kind: 'drain';
  readonly machines: readonly MachineId[];
  /** Reasons of single machines, by id; the others have that of the intent. */
  readonly reasons?: Readonly<Record<string, string>>;
  /** Absent: the pool's `scaleDown.drainTimeout`. */
  readonly timeoutMs?: number;
}

/** Undoes drains. Has no effect on machines that are being deleted already. */
export interface CancelDrainIntent extends IntentCommon {
  readonly kind: 'cancel-drain';
  readonly machines: readonly MachineId[];
}

/** Cancels creations that have not created anything yet. Never removes an existing VM. */
export interface CancelIntent extends IntentCommon {
  readonly kind: 'cancel';
  readonly machines: readonly MachineId[];
}

/** Ends the pause of a pool. */
export interface ResumeIntent extends IntentCommon {
  readonly kind: 'resume';
  /** Empty: the intent is about the pool. */
  readonly machines: readonly MachineId[];
}

interface VmIntentCommon extends IntentCommon {
  /** Empty: the intent is about one VM. */
  readonly machines: readonly MachineId[];
  readonly region: string;
  readonly vmId: number;
  /** Digest of the configuration that the person has seen. */
  readonly digest: string;
  /** Why it was not carried out; the intent is done then. */
  readonly failure?: { readonly code: string; readonly message: string };
}

/** Writes a new marker into a VM whose ownership is not proven. */
export interface AdoptIntent extends VmIntentCommon {
  readonly kind: 'adopt';
}

/** Removes our marker and our tags from a VM, which is then never changed. */
export interface ForgetIntent extends VmIntentCommon {
  readonly kind: 'forget';
}

/** Stops and destroys a VM that is not ours. A person has typed its name. */
export interface DestroyIntent extends VmIntentCommon {
  readonly kind: 'destroy';
}

export type VmIntent = AdoptIntent | ForgetIntent | DestroyIntent;
export type MachineIntent =
  | CreateIntent
  | DeleteIntent
  | DrainIntent
  | CancelDrainIntent
  | CancelIntent;
export type Intent = MachineIntent | VmIntent | ResumeIntent;

export function isVmIntent(intent: Intent): intent is VmIntent {
  return intent.kind === 'adopt' || intent.kind === 'forget' || intent.kind === 'destroy';
}
