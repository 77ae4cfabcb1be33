// SPDX-License-Identifier: Apache-2.0
import type { Lease } from '../model/lease.ts';
import type { MachineId } from '../model/machine-id.ts';
import { type DriveEvents, drive } from './drive.ts';
import type { FleetOptions } from './options.ts';
import { listOrphans, type Orphan } from './orphans/list.ts';
import { type Asked, Requests, type Why } from './requests.ts';
import { type RoundReport, runRound } from './round.ts';
import { type FleetStatus, readStatus } from './status.ts';
import { Memory } from './turn.ts';

export interface Fleet {
  /** Asks for more machines. NoCapacity/POOL_AT_MAXIMUM beyond the pool's limit: nothing was asked for. */
  request(pool: string, count: number, why: Why): Promise<Asked>;
  /** Asks for these to be taken away. */
  remove(machines: readonly MachineId[], why: Why): Promise<Asked>;
  /** Asks for whatever makes the pool that large. */
  scaleTo(pool: string, size: number, why: Why): Promise<Asked>;
  status(): Promise<FleetStatus>;
  /** What has lost its counterpart, read from Proxmox and the records; nothing is changed. */
  orphans(): Promise<readonly Orphan[]>;
  /** One round under a lease that the caller holds. */
  round(lease: Lease, options?: { readonly signal?: AbortSignal }): Promise<RoundReport>;
  /** Drives whenever nobody else does, until the signal. */
  drive(signal: AbortSignal, events?: DriveEvents): Promise<void>;
}

export function createFleet(options: FleetOptions): Fleet {
  const requests = new Requests(options);
  const memory = new Memory();
  return {
    request: (pool, count, why) => requests.request(pool, count, why),
    remove: (machines, why) => requests.remove(machines, why),
    scaleTo: (pool, size, why) => requests.scaleTo(pool, size, why),
    status: () => readStatus(options),
    orphans: () => listOrphans(options),
    round: (lease, { signal } = {}) =>
      runRound(options, { lease, expiresAt: () => lease.expiresAt, signal }, memory),
    drive: (signal, events) => drive(options, signal, events),
  };
}
