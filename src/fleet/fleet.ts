// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';
import type { MachineId } from '../model/machine-id.ts';
import { Outlook } from './capacity/outlook.ts';
import { type DriveTerms, drive } from './drive.ts';
import { Memory } from './memory.ts';
import { Mirror, type Picture } from './mirror/mirror.ts';
import type { FleetOptions } from './options.ts';
import { listOrphans, type Orphan } from './orphans/list.ts';
import { type Asked, Requests, type Why } from './requests.ts';
import { type RoundReport, runRound } from './round.ts';
import { type FleetStatus, readStatus } from './status.ts';

export interface Fleet {
  /** The records in memory, to read. What others wrote is in it after `follow`. */
  readonly picture: Picture;
  /** What the last rounds of this process saw, to read. */
  readonly outlook: Pick<Outlook, 'takenAt' | 'trouble' | 'hasVm' | 'room' | 'isKnown'>;
  /** Asks for more machines. NoCapacity/POOL_AT_MAXIMUM beyond the pool's limit: nothing was asked for. */
  request(pool: string, count: number, why: Why): Promise<Asked>;
  /** Asks for these to be taken away. */
  remove(machines: readonly MachineId[], why: Why): Promise<Asked>;
  /** Asks for whatever makes the pool that large. */
  scaleTo(pool: string, size: number, why: Why): Promise<Asked>;
  /** Calls off as many creations as asked for of which nothing was made yet; fewer if there are fewer. */
  cancel(pool: string, count: number, why: Why): Promise<Asked>;
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
  const mirror = new Mirror(store, (pool) => settings.pools[pool]?.memoryOverheadBytes ?? 0);
  const outlook = new Outlook();
  const engine = { ...options, mirror, outlook };
  const requests = new Requests(options, mirror);
  const memory = new Memory();
  return {
    picture: mirror,
    outlook,
    request: (pool, count, why) => requests.request(pool, count, why),
    remove: (machines, why) => requests.remove(machines, why),
    scaleTo: (pool, size, why) => requests.scaleTo(pool, size, why),
    cancel: (pool, count, why) => requests.cancel(pool, count, why),
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
