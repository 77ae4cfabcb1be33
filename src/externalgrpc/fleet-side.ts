// SPDX-License-Identifier: Apache-2.0
import type { Desk, OutlookReading } from '../fleet/index.ts';

/** What the face needs of the fleet: records and outlook to read, orders to give. Not the fleet itself, which may be
 * driven in another thread. */
export interface FleetSide extends Pick<Desk, 'picture' | 'request' | 'remove' | 'cancel'> {
  readonly outlook: OutlookReading;
}
