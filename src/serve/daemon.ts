// SPDX-License-Identifier: Apache-2.0
// What the parts of the daemon share.
import type { LoadedConfig } from '../config/index.ts';
import type { CheckDrain, MinimumDelay } from '../fleet/index.ts';
import type { PoolObjects } from '../ports/pool-objects.ts';
import type { OpenFleet, Telemetry } from '../setup/index.ts';
import type { ConfigSource, ConfigWatcher } from './config-watcher.ts';
import type { ServeContext } from './context.ts';
import type { RunningFrontEnd } from './front-end.ts';
import type { PoolDefinitions } from './pool-definitions.ts';
import type { PoolWatcher } from './pool-objects.ts';
import type { ConfigReloader } from './reload-config.ts';
import type { Watchdog } from './watchdog.ts';

/** Pools that ProxmoxPool objects define. */
export interface DaemonPools {
  readonly objects: PoolObjects;
  readonly definitions: PoolDefinitions;
  readonly watcher: PoolWatcher;
}

export interface Daemon {
  readonly context: ServeContext;
  /** The config in use: replaced as a whole by `applyConfig`. */
  loaded: LoadedConfig;
  readonly source: ConfigSource;
  /** Of the config file at the start; undefined without one. */
  readonly text: string | undefined;
  readonly watcher: ConfigWatcher;
  readonly telemetry: Telemetry;
  readonly watchdog: Watchdog;
  /** Undefined without a Cluster Autoscaler. */
  readonly minimumDelay: MinimumDelay | undefined;
  /** Undefined until it is open. */
  open: OpenFleet | undefined;
  /** Undefined until it has started. */
  frontEnd: RunningFrontEnd | undefined;
  /** Undefined until the front end has started. */
  checkDrain: CheckDrain | undefined;
  /** Undefined until the fleet is open. */
  reloader: ConfigReloader | undefined;
  /** Undefined until the fleet is open, and when pools come from the config file alone. */
  pools: DaemonPools | undefined;
}
