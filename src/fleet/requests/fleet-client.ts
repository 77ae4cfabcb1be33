// SPDX-License-Identifier: Apache-2.0
// What front ends call: requests, and the records to read. Any number of clients may use one store, in threads and
// processes of their own; the driver carries the requests out.
import type { MachineId } from '../../model/machine.ts';
import type { Store } from '../../ports/store.ts';
import { type FleetView, RecordCache } from '../records/record-cache.ts';
import { type Accepted, type RequestOptions, type RequestReason, Requests } from './requests.ts';

export interface FleetClient {
  /** The records in memory, read-only. Writes of other processes are visible after `refresh`. */
  readonly view: FleetView;
  /** Requests more machines. Throws NoCapacity/POOL_AT_MAXIMUM beyond the pool's limits; then nothing is requested. */
  request(pool: string, count: number, why: RequestReason): Promise<Accepted>;
  /** Requests the deletion of these machines. */
  remove(machines: readonly MachineId[], why: RequestReason): Promise<Accepted>;
  /** Requests the creations or deletions that bring the pool to this size. */
  scaleTo(pool: string, size: number, why: RequestReason): Promise<Accepted>;
  /** Cancels up to `count` creations of which nothing exists on Proxmox yet. */
  cancel(pool: string, count: number, why: RequestReason): Promise<Accepted>;
}

export interface FleetClientOptions extends RequestOptions {
  readonly store: Store;
}

export function createFleetClient(
  options: FleetClientOptions,
  cache: RecordCache = new RecordCache(options.store),
): FleetClient {
  const requests = new Requests(options, cache);
  return {
    view: cache,
    request: (pool, count, why) => requests.request(pool, count, why),
    remove: (machines, why) => requests.remove(machines, why),
    scaleTo: (pool, size, why) => requests.scaleTo(pool, size, why),
    cancel: (pool, count, why) => requests.cancel(pool, count, why),
  };
}
