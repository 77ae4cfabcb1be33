// SPDX-License-Identifier: Apache-2.0
import type { FleetClient, ForecastReader } from '../fleet/index.ts';

/** What the face needs of the fleet: records and forecast to read, orders to give. Not the fleet itself, which may be
 * driven in another thread. */
export interface FleetSide extends Pick<FleetClient, 'view' | 'request' | 'remove' | 'cancel'> {
  readonly forecast: ForecastReader;
}
