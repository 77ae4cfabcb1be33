// SPDX-License-Identifier: Apache-2.0
// The seam between `serve` and the faces: what a face gets, and what it is asked while it runs. main.ts builds the
// face that the mode names.
import type { Config } from '../../config/index.ts';
import type { Fleet } from '../../fleet/index.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Cluster } from '../../ports/cluster.ts';
import type { Log } from '../../ports/log.ts';
import type { Meters } from '../../ports/meters.ts';
import type { Store } from '../../ports/store.ts';

export interface FaceParts {
  readonly config: Config;
  readonly fleet: Fleet;
  readonly store: Store;
  /** Undefined without access to Kubernetes. */
  readonly cluster: Cluster | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Meters;
  /** Aborted when the process shall end: take nothing new. */
  readonly signal: AbortSignal;
}

export interface RunningFace {
  /** For people: `gRPC on 0.0.0.0:50051`. */
  readonly what: string;
  /** Empty when it can answer; else what it waits for. */
  waitingFor(): readonly string[];
  /** Rejects when it can no longer answer and will not recover by itself; never resolves. */
  readonly failed: Promise<never>;
  /** Finishes what was begun, within a bound of its own. */
  close(): Promise<void>;
}
