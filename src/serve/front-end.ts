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
  /** At the start; `replaceConfig` brings later ones. */
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

/** A decision about pods. */
export interface ScalingPlan {
  readonly at: number;
  readonly steps: readonly (
    | {
        readonly kind: 'create';
        readonly pool: string;
        readonly reason: string;
        readonly machines: readonly { readonly pods: readonly PodName[] }[];
      }
    | { readonly kind: 'drain' | 'cancel'; readonly pool: string; readonly reason: string }
  )[];
  readonly refusals: readonly {
    readonly subject: { readonly kind: string; readonly name: string };
    readonly code: string;
    readonly reason: string;
  }[];
  /** Where pending pods will run without a new machine. */
  readonly placements: readonly {
    readonly pod: PodName;
    readonly node: string;
    readonly on: string;
  }[];
}

interface PodName {
  readonly namespace: string;
  readonly name: string;
}

/** What a front end that decides about pods has observed and decided. */
export interface ScalingStatus {
  /** Of the last decision; undefined before the first. */
  readonly plan: ScalingPlan | undefined;
  /** The last ones that changed something, newest first. */
  readonly plans: readonly ScalingPlan[];
  readonly pending: number;
  readonly nodes: number;
  readonly requested: { readonly cpuMilli: number; readonly memoryBytes: number };
  readonly allocatable: { readonly cpuMilli: number; readonly memoryBytes: number };
}

export interface RunningFrontEnd {
  /** For the log: `gRPC for the Cluster Autoscaler on port 50051`. */
  readonly description: string;
  /** What it waits for; empty once it can serve. */
  waitingFor(): readonly string[];
  /** Rejects when it can no longer serve and does not recover by itself; never resolves. */
  readonly failed: Promise<never>;
  /** Absent for a front end that decides nothing about pods. */
  scaling?(): ScalingStatus;
  /** Settings that differ apply between two passes, decisions or loops. What needs a restart is the same. */
  replaceConfig(config: Config): void;
  /** Finishes requests in progress, within its own time limit. */
  close(): Promise<void>;
}
