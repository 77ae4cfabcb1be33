// SPDX-License-Identifier: Apache-2.0
// What the engine knows of a pool beside its settings: facts that must survive a restart. The settings
// themselves come from the config file at each start and are never stored.

/** A pool whose new machines keep failing waits, longer each time, and says why. */
export interface PoolBackoff {
  readonly failures: number;
  readonly since: number;
  /** Wall clock; nothing is created for the pool before. */
  readonly until: number;
  /** Error code and sentence of the last failure. */
  readonly code: string;
  readonly message: string;
}

/** What joined nodes really offer to pods, by size: corrects the template that is shown to schedulers. */
export interface LearnedAllocatable {
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly ephemeralStorageBytes: number;
  readonly pods: number;
  readonly learnedAt: number;
}

export interface PoolState {
  readonly pool: string;
  readonly backoff?: PoolBackoff;
  /** Keyed by `<cpu>x<memory bytes>x<disk bytes>`. */
  readonly allocatable: Readonly<Record<string, LearnedAllocatable>>;
}
