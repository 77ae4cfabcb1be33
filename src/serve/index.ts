// SPDX-License-Identifier: Apache-2.0
// The daemon: opens the fleet, drives it, and serves health, metrics and the front end of the configured mode.
export type { ConfigSource } from './config-watcher.ts';
export type {
  DashboardServerOptions,
  HealthServerOptions,
  ServeAdapters,
  ServeContext,
} from './context.ts';
export type { FrontEndOptions, RunningFrontEnd } from './front-end.ts';
export { PoolDefinitions } from './pool-definitions.ts';
export { serve } from './serve.ts';
