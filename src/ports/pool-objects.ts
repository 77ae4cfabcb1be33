// SPDX-License-Identifier: Apache-2.0
// Pools that are defined by objects in Kubernetes (ProxmoxPool).
import type { PvescalerError } from './errors.ts';

export type PoolConditionType = 'Ready' | 'BackedOff' | 'AtCapacity' | 'Paused';

export interface PoolCondition {
  readonly type: PoolConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  /** One word in CamelCase. */
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  /** RFC 3339, in seconds. */
  readonly lastTransitionTime: string;
}

export interface PoolObjectStatus {
  /** Generation of the spec that the status is about. */
  readonly observedGeneration: number;
  /** Machines that exist or are requested, those being drained or deleted included. */
  readonly replicas: number;
  readonly readyReplicas: number;
  /** Limits that apply now. */
  readonly minReplicas: number;
  readonly maxReplicas: number;
  /** Label selector of the Nodes of the pool. */
  readonly selector: string;
  readonly conditions: readonly PoolCondition[];
}

export interface PoolObject {
  readonly name: string;
  readonly uid: string;
  /** Changes with each write. */
  readonly version: string;
  /** Changes with each change of the spec. */
  readonly generation: number;
  readonly createdAt: number;
  /** Deleted, and kept by finalizers. */
  readonly isTerminating: boolean;
  /** Has the finalizer of pvescaler, which keeps a deleted object until its machines are gone. */
  readonly isHeld: boolean;
  readonly spec: Readonly<Record<string, unknown>>;
  /** As written last; undefined before the first time. */
  readonly status: Partial<PoolObjectStatus> | undefined;
}

export interface PoolObjects {
  /**
   * Every object, as far as this process knows; undefined before they were read for the first time. While the API server
   * cannot be read they stay the same: an object that is not in the list was seen to be gone.
   */
  all(): readonly PoolObject[] | undefined;
  /** Why the last read failed; undefined when it did not. */
  lastError(): PvescalerError | undefined;
  /** Resolves at the next change; rejects with Cancelled when the signal aborts. */
  waitForChange(signal: AbortSignal): Promise<void>;
  /** Sets the finalizer, or removes it. Throws Conflict when the object is not as it was read. */
  setHeld(object: PoolObject, isHeld: boolean): Promise<void>;
  /** Throws Conflict when the object is not as it was read. */
  writeStatus(object: PoolObject, status: PoolObjectStatus): Promise<void>;
  close(): Promise<void>;
}
