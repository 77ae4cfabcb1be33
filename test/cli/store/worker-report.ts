// SPDX-License-Identifier: Apache-2.0

/** Short enough that a killed holder is replaced quickly and that a slow holder sometimes loses the lease. */
export const LEASE_MS = 80;

/** One line of a worker's standard output. */
export type WorkerReport =
  | { readonly event: 'opened' }
  | { readonly event: 'acquired' | 'renewed'; readonly token: number; readonly expiresAt: number }
  | {
      readonly event: 'wrote';
      readonly token: number;
      readonly count: number;
      readonly revision: number;
    }
  | {
      readonly event: 'noted';
      readonly token: number;
      readonly count: number;
      readonly sequence: number;
    }
  | { readonly event: 'paused' | 'releasing'; readonly token: number }
  | { readonly event: 'refused'; readonly token: number; readonly code: string }
  | { readonly event: 'kept'; readonly key: string; readonly sequence: number }
  | { readonly event: 'outcome'; readonly code: string }
  | {
      readonly event: 'filled';
      readonly code: string;
      readonly kept: number;
      readonly found: number;
    };

export type WorkerEvent = WorkerReport['event'];
