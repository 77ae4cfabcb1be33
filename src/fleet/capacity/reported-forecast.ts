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
 * The driver's forecast in another thread, as last reported. A report without a successor expires with the driver's
 * lease: both threads may have been suspended meanwhile.
 */
export class ReportedForecast implements ForecastReader {
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>;
  readonly #vmIds = new WeakMap<RegionReport, ReadonlySet<number>>();
  readonly #headrooms = new Map<string, Headroom>();
  #report: ForecastReport | undefined;

  constructor(clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#clock = clock;
  }

  set(report: ForecastReport): void {
    this.#report = report;
    for (const [nodeGroup, headroom] of Object.entries(report.headrooms)) {
      // Keep the same object until it is computed again, so that values derived from it can be cached by identity.
      if (this.#headrooms.get(nodeGroup)?.countedAt !== headroom.countedAt)
        this.#headrooms.set(nodeGroup, headroom);
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
    // Built on the first use: rarely needed, and a report may name fifty thousand VMs.
    const known = this.#vmIds.get(report) ?? new Set(report.vmIds);
    this.#vmIds.set(report, known);
    return known.has(vmId);
  }

  headroom(nodeGroup: string): Headroom | undefined {
    const isReported = this.#report?.headrooms[nodeGroup] !== undefined;
    return isReported ? this.#headrooms.get(nodeGroup) : undefined;
  }
}
