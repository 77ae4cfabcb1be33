// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import { isBefore } from '../context/driver-lease.ts';
import type {
  ForecastReader,
  ForecastReport,
  Headroom,
  RegionReport,
} from './capacity-forecast.ts';

/**
 * The outlook of a thread that does not drive, as the one that does has last told it. A report that no other follows
 * ends with the right of whoever made it: both may have been stopped and woken up meanwhile.
 */
export class ReportedForecast implements ForecastReader {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly #vmIds = new WeakMap<RegionReport, ReadonlySet<number>>();
  readonly #rooms = new Map<string, Headroom>();
  #report: ForecastReport | undefined;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  set(report: ForecastReport): void {
    this.#report = report;
    for (const [pool, room] of Object.entries(report.headrooms)) {
      // The same object until it is counted anew: what is worked out from it need not be worked out again.
      if (this.#rooms.get(pool)?.countedAt !== room.countedAt) this.#rooms.set(pool, room);
    }
  }

  isComplete(region: string): boolean {
    const report = this.#report;
    if (report === undefined || !isBefore(report.until, this.#clock)) return false;
    return report.regions[region]?.isAdopted ?? false;
  }

  takenAt(region: string): number | undefined {
    return this.#report?.regions[region]?.takenAt;
  }

  readError(region: string): string | undefined {
    return this.#report?.regions[region]?.readError;
  }

  hasVm(region: string, vmId: number): boolean {
    const report = this.#report?.regions[region];
    if (report === undefined) return false;
    // Asked for in rare cases only, of a report that may name fifty thousand.
    const known = this.#vmIds.get(report) ?? new Set(report.vmIds);
    this.#vmIds.set(report, known);
    return known.has(vmId);
  }

  headroom(pool: string): Headroom | undefined {
    return this.#report?.headrooms[pool] === undefined ? undefined : this.#rooms.get(pool);
  }
}
