// SPDX-License-Identifier: Apache-2.0
// What the health listener says, as data.

/** `/healthz`: whether the process should be restarted. */
export interface Health {
  readonly healthy: boolean;
  /** Why not; empty when it is. */
  readonly problems: readonly string[];
}

/** `/readyz`: whether both sides have been seen, and what cannot be done. */
export interface Readiness {
  readonly ready: boolean;
  /** What is waited for. */
  readonly waitingFor: readonly string[];
  /** What this process cannot do although it is ready. */
  readonly limits: readonly string[];
  readonly leader: boolean;
}
