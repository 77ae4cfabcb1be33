// SPDX-License-Identifier: Apache-2.0
import type { CollectionName } from './record-validators.ts';

/** One durable write. A call that changed nothing (the release of a lost lease) is not a write. */
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
  /** Record key, lease name or sequence number; for `prune`, the number of deleted entries. */
  readonly key: string;
}

/**
 * Called after a write is durable and before its call resolves: the points at which tests simulate a crash. If it
 * throws, the call rejects with that error.
 */
export type StoreObserver = (write: StoreWrite) => void;
