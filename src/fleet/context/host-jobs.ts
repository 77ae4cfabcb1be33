// SPDX-License-Identifier: Apache-2.0
// Work of a pass that calls a host: reading a VM that may be ours, removing an orphan, listing seeds. The workers of the
// host run it, so that a host that does not answer delays no pass and no other host.
import type { ReconcileResult } from './machine-reconcile.ts';
import type { ReconcileContext } from './reconcile-context.ts';

/** Runs with the newest context. Repeated after a requeue; an error is recorded and repeated after a back-off. */
export type HostJob = (context: ReconcileContext) => Promise<ReconcileResult>;

export interface HostJobTarget {
  readonly region: string;
  readonly host: string;
}

export interface HostJobs {
  /** Has no effect while a job of that key waits or runs. */
  start(key: string, target: HostJobTarget, job: HostJob): void;
  /** Waits for a moment until these jobs have run once. One whose host does not answer stays in progress. */
  settle(keys: readonly string[]): Promise<void>;
}
