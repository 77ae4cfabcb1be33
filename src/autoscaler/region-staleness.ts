// SPDX-License-Identifier: Apache-2.0
// Whether what is known of a region is good enough to decide by.
import type { ForecastReader } from '../fleet/index.ts';
import { formatAge } from '../model/format-text.ts';

/** A region is read in every pass, at least every half minute. */
const MAX_AGE_MS = 90_000;

/** Why nothing may be decided about a region; undefined: its view is fresh, and all its machines have a record. */
export function regionStaleness(
  forecast: ForecastReader,
  now: number,
): (region: string) => string | undefined {
  return (region) => {
    const takenAt = forecast.takenAt(region);
    const error = forecast.readError(region);
    if (takenAt === undefined) return error ?? 'it has not been read yet';
    if (now - takenAt > MAX_AGE_MS)
      return error ?? `its last reading is ${formatAge(now - takenAt)} old`;
    if (!forecast.isComplete(region)) return 'not all its VMs have been inspected yet';
    return undefined;
  };
}
