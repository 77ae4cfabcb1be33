// SPDX-License-Identifier: Apache-2.0
// The boundary between the daemon and a front end. main.ts starts the front end that the mode names.
import type { Config } from '../config/index.ts';
import type { CheckDrain, Fleet } from '../fleet/index.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Log } from '../ports/log.ts';
import type { Meters } from '../ports/meters.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';

export interface FrontEndOptions {
  readonly config: Config;
  readonly fleet: Fleet;
  readonly store: Store;
  /** Undefined without access to Kubernetes. */
  readonly cluster: Cluster | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** Sets the check of the drains that the front end requests. */
  readonly setDrainCheck: (check: CheckDrain) => void;
  readonly log: Log;
  readonly meters: Meters;
  /** Aborted when the process stops: accept no new requests. */
  readonly signal: AbortSignal;
  /** Call it when the Cluster Autoscaler has begun a loop. */
  readonly onRefresh: () => void;
}

export interface RunningFrontEnd {
  /** For the log: `gRPC for the Cluster Autoscaler on port 50051`. */
  readonly description: string;
  /** What it waits for; empty once it can serve. */
  waitingFor(): readonly string[];
  /** Rejects when it can no longer serve and does not recover by itself; never resolves. */
  readonly failed: Promise<never>;
  /** Finishes requests in progress, within its own time limit. */
  close(): Promise<void>;
}
