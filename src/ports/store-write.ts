// SPDX-License-Identifier: Apache-2.0
import type { CollectionName } from './record-shapes.ts';

/** One write that has become durable. Calls that changed nothing (a release of a lost lease) are none. */
export interface StoreWrite {
  readonly target: CollectionName | 'leases' | 'journal' | 'installation';
  readonly action:
    | 'create'
    | 'replace'
    | 'remove'
    | 'acquire'
    | 'renew'
    | 'release'
    | 'append'
    | 'prune';
  /** Record key, lease name, sequence number; how many for `prune`. */
  readonly key: string;
}

/**
 * Called after the write is durable and before its caller learns of it: the instants at which a crash is
 * worth trying. What it throws is what the caller gets instead of the answer.
 */
export type StoreObserver = (write: StoreWrite) => void;
