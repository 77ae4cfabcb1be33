// SPDX-License-Identifier: Apache-2.0
// Where orders are taken and the records looked at. Driving is done elsewhere: there may be any number of desks on one
// store, in threads and processes of their own.
import type { MachineId } from '../model/machine-id.ts';
import type { Store } from '../ports/store.ts';
import { Mirror, type Picture } from './mirror/mirror.ts';
import { type Asked, Requests, type RequestTerms, type Why } from './requests.ts';

export interface Desk {
  /** The records in memory, to read. What others wrote is in it after `follow`. */
  readonly picture: Picture;
  /** Asks for more machines. NoCapacity/POOL_AT_MAXIMUM beyond the pool's limit: nothing was asked for. */
  request(pool: string, count: number, why: Why): Promise<Asked>;
  /** Asks for these to be taken away. */
  remove(machines: readonly MachineId[], why: Why): Promise<Asked>;
  /** Asks for whatever makes the pool that large. */
  scaleTo(pool: string, size: number, why: Why): Promise<Asked>;
  /** Calls off as many creations as asked for of which nothing was made yet; fewer if there are fewer. */
  cancel(pool: string, count: number, why: Why): Promise<Asked>;
}

export interface DeskOptions extends RequestTerms {
  readonly store: Store;
}

export function openDesk(options: DeskOptions, mirror: Mirror = new Mirror(options.store)): Desk {
  const requests = new Requests(options, mirror);
  return {
    picture: mirror,
    request: (pool, count, why) => requests.request(pool, count, why),
    remove: (machines, why) => requests.remove(machines, why),
    scaleTo: (pool, size, why) => requests.scaleTo(pool, size, why),
    cancel: (pool, count, why) => requests.cancel(pool, count, why),
  };
}
