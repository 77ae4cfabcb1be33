// SPDX-License-Identifier: Apache-2.0
// Serves health, readiness and metrics over HTTP. Owns routes and the listener. Start reading at health-app.ts;
// contract.ts defines the response bodies.
export type { Health, Readiness } from './contract.ts';
export {
  createDashboardApp,
  type DashboardActions,
  type DashboardSources,
} from './dashboard-app.ts';
export type {
  DashboardGuest,
  DashboardHost,
  DashboardMachine,
  DashboardPlan,
  DashboardPool,
  DashboardState,
} from './dashboard-contract.ts';
export { createHealthApp, type HealthSources } from './health-app.ts';
export { type HttpListener, type ListenAddress, listen } from './listen.ts';
export { guardRequests, requireToken } from './request-guard.ts';
