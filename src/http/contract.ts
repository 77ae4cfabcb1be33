// SPDX-License-Identifier: Apache-2.0
// Response bodies of the health endpoints and of the JSON API: all that the page in ui/ knows of the server.
export type {
  DashboardGuest,
  DashboardHost,
  DashboardMachine,
  DashboardPlan,
  DashboardPool,
  DashboardSample,
  DashboardState,
  StateChange,
} from './dashboard-contract.ts';

/** `/healthz`: whether the process is healthy or must be restarted. */
export interface Health {
  readonly healthy: boolean;
  /** Why it is unhealthy; empty when healthy. */
  readonly problems: readonly string[];
}

/** `/readyz`: whether Proxmox and Kubernetes have been read, and what is not possible. */
export interface Readiness {
  readonly ready: boolean;
  /** What is still missing; empty when ready. */
  readonly waitingFor: readonly string[];
  /** What this process cannot do although it is ready. */
  readonly limits: readonly string[];
  readonly leader: boolean;
}
