// SPDX-License-Identifier: Apache-2.0
// What the parts of the daemon share.
import type { LoadedConfig } from '../config/index.ts';
import type { CheckDrain, MinimumDelay } from '../fleet/index.ts';
import type { OpenFleet, Telemetry } from '../setup/index.ts';
import type { ConfigSource, ConfigWatcher } from './config-watcher.ts';
import type { ServeContext } from './context.ts';
import type { RunningFrontEnd } from './front-end.ts';
import type { ConfigReloader } from './reload-config.ts';
import type { Watchdog } from './watchdog.ts';

export interface Daemon {
  readonly context: ServeContext;
  /** The config in use: replaced as a whole by `applyConfig`. */
  loaded: LoadedConfig;
  readonly source: ConfigSource;
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
  /** Undefined until the front end has started. */
  reloader: ConfigReloader | undefined;
}
