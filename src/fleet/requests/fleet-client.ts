// SPDX-License-Identifier: Apache-2.0
// Where orders are taken and the records looked at. Driving is done elsewhere: there may be any number of desks on one
// store, in threads and processes of their own.
import type { MachineId } from '../../model/machine-id.ts';
import type { Store } from '../../ports/store.ts';
import { type FleetView, RecordCache } from '../records/record-cache.ts';
import { type Accepted, type RequestOptions, type RequestReason, Requests } from './requests.ts';

export interface FleetClient {
  /** The records in memory, to read. What others wrote is in it after `follow`. */
  readonly view: FleetView;
  /** Asks for more machines. NoCapacity/POOL_AT_MAXIMUM beyond the pool's limit: nothing was asked for. */
  request(pool: string, count: number, why: RequestReason): Promise<Accepted>;
  /** Asks for these to be taken away. */
  remove(machines: readonly MachineId[], why: RequestReason): Promise<Accepted>;
  /** Asks for whatever makes the pool that large. */
  scaleTo(pool: string, size: number, why: RequestReason): Promise<Accepted>;
  /** Calls off as many creations as asked for of which nothing was made yet; fewer if there are fewer. */
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
