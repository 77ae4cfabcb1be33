// SPDX-License-Identifier: Apache-2.0
import type { FleetClient, ForecastReader } from '../fleet/index.ts';

/** The part of the fleet that this front end uses: records and forecast to read, requests to write. The driver itself
 * may run in another thread. */
export interface FleetAccess extends Pick<FleetClient, 'view' | 'request' | 'remove' | 'cancel'> {
  readonly forecast: ForecastReader;
}
