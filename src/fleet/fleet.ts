// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';
import { Outlook, type OutlookReading } from './capacity/outlook.ts';
import { type Desk, openDesk } from './desk.ts';
import { type DriveTerms, drive } from './drive.ts';
import { Memory } from './memory.ts';
import { Mirror } from './mirror/mirror.ts';
import type { FleetOptions } from './options.ts';
import { listOrphans, type Orphan } from './orphans/list.ts';
import type { PoolTerms } from './pool-limits.ts';
import { type RoundReport, runRound } from './round.ts';
import { type FleetStatus, readStatus } from './status.ts';

export interface Fleet extends Desk {
  /** For desks elsewhere, which must judge orders as this one does. */
  readonly terms: Readonly<Record<string, PoolTerms>>;
  /** What the last rounds of this process saw, to read. */
  readonly outlook: OutlookReading & Pick<Outlook, 'report' | 'onChange'>;
  status(): Promise<FleetStatus>;
  /** What has lost its counterpart, read from Proxmox and the records; nothing is changed. */
  orphans(): Promise<readonly Orphan[]>;
  /** One round under a lease that the caller holds. */
  round(lease: Lease, options?: { readonly signal?: AbortSignal }): Promise<RoundReport>;
  /** Drives whenever nobody else does, until the signal. */
  drive(terms: DriveTerms): Promise<void>;
}

export function createFleet(options: FleetOptions): Fleet {
  const { store, settings } = options;
  const { pools } = settings;
  const mirror = new Mirror(store, (pool) => pools[pool]?.memoryOverheadBytes ?? 0);
  const outlook = new Outlook();
  const engine = { ...options, mirror, outlook };
  const memory = new Memory();
  return {
    ...openDesk({ ...options, pools }, mirror),
    terms: Object.fromEntries(
      Object.values(pools).map(({ name, limits, size }) => [name, { name, limits, size }]),
    ),
    outlook,
    status: () => readStatus(options, mirror),
    orphans: () => listOrphans(options, mirror),
    round: (lease, { signal } = {}) =>
      runRound(
        engine,
        { lease, mayAct: () => options.clock.now() < lease.expiresAt, signal },
        memory,
      ),
    drive: (terms) => drive(engine, terms),
  };
}
