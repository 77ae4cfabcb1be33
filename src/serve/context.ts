// SPDX-License-Identifier: Apache-2.0
// What the daemon needs from the process. main.ts implements it.
import type { Config } from '../config/index.ts';
import type { DashboardSources } from '../http/index.ts';
import type { PvescalerError } from '../ports/errors.ts';
import type { PoolObjects } from '../ports/pool-objects.ts';
import type { SetupAdapters, SetupContext, Telemetry } from '../setup/index.ts';
import type { FrontEndOptions, RunningFrontEnd } from './front-end.ts';

export interface HealthServerOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly health: () => { readonly healthy: boolean; readonly problems: readonly string[] };
  readonly readiness: () => {
    readonly ready: boolean;
    readonly waitingFor: readonly string[];
    readonly limits: readonly string[];
    readonly leader: boolean;
  };
  readonly metrics: Telemetry['metrics'] | undefined;
}

export interface DashboardServerOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly sources: Omit<DashboardSources, 'readFile'>;
}

export interface ServeAdapters extends SetupAdapters {
  openTelemetry(log: Config['log']): Promise<Telemetry>;
  /** InvalidConfig when it cannot listen on the address. */
  startHealthServer(
    options: HealthServerOptions,
  ): Promise<{ readonly url: string; readonly close: () => Promise<void> }>;
  /** InvalidConfig when it cannot listen on the address. */
  startDashboard(
    options: DashboardServerOptions,
  ): Promise<{ readonly url: string; readonly close: () => Promise<void> }>;
  /** Watches the ProxmoxPool objects. Undefined without access to Kubernetes. */
  openPoolObjects(
    cluster: Config['cluster'],
    options: { readonly onError: (error: PvescalerError) => void },
  ): Promise<PoolObjects | undefined>;
  /** The front end of the configured mode; undefined when the mode has none in this release. */
  startFrontEnd(options: FrontEndOptions): Promise<RunningFrontEnd | undefined>;
}

export interface ServeContext extends SetupContext {
  readonly adapters: ServeAdapters;
  readonly version: string;
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  /** Calls the listener on each SIGHUP, which then does not end the process. */
  readonly onHangUp: (listener: () => void) => void;
}
