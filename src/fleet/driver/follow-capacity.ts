// SPDX-License-Identifier: Apache-2.0
// The capacity forecast of a process that shares its records with the driver on another machine: it reads Proxmox itself,
// and changes nothing.
import { asPvescalerError } from '../../ports/errors.ts';
import type { CapacityForecast } from '../capacity/capacity-forecast.ts';
import { DriverState } from '../context/driver-state.ts';
import type { FleetOptions } from '../context/options.ts';
import type { RecordCache } from '../records/record-cache.ts';
import { readSharedCapacity } from '../recovery/read-capacity.ts';

/** How soon the end of a term is noticed. */
const POLL_MS = 1_000;

export interface FollowParts {
  /** For a read that begins now. */
  readonly current: () => FleetOptions;
  readonly cache: RecordCache;
  readonly forecast: CapacityForecast;
}

/** Until the signal: while another process drives, reads the capacity at the interval of its passes. */
export async function followCapacity(
  { current, cache, forecast }: FollowParts,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = current();
  const state = new DriverState();
  let nextAt = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    if (forecast.isDriving) nextAt = Number.NEGATIVE_INFINITY;
    else if (clock.monotonic() >= nextAt) {
      const options = current();
      nextAt = clock.monotonic() + options.settings.reconcileMs;
      await readSharedCapacity(options, cache, state).then(
        (read) => forecast.follow(read),
        (error: unknown) => recordError(options, forecast, asPvescalerError(error).message),
      );
    }
    await clock.sleep(POLL_MS, { signal }).catch(() => undefined);
  }
}

/** The last reading stays until it is too old. */
function recordError(
  { hypervisors }: FleetOptions,
  forecast: CapacityForecast,
  message: string,
): void {
  if (forecast.isDriving) return;
  const regions = Array.from(hypervisors.keys(), (region) => [region, message]);
  forecast.setViews(new Map(), Object.fromEntries(regions));
}
