// SPDX-License-Identifier: Apache-2.0
// What the hosts have left, read once by a process that need not be the driver. Changes nothing.
import type { FleetCapacity } from '../capacity/capacity-forecast.ts';
import { computeCapacity } from '../capacity/headroom.ts';
import { readAddresses } from '../capacity/taken-addresses.ts';
import { readTemplates } from '../capacity/templates.ts';
import type { HostJob, HostJobs } from '../context/host-jobs.ts';
import type { FleetOptions } from '../context/options.ts';
import type { RecordCache } from '../records/record-cache.ts';
import { readContext } from './list-orphans.ts';

/** Rejects when a region cannot be read. */
export async function readCapacity(
  options: FleetOptions,
  cache: RecordCache,
): Promise<FleetCapacity> {
  const context = await readContext(options, cache);
  const running: Promise<unknown>[] = [];
  const jobs: HostJobs = {
    start: (_key, _target, job: HostJob) => void running.push(job(context)),
    settle: async () => void (await Promise.allSettled(running)),
  };
  await jobs.settle([...readTemplates(context, jobs), ...readAddresses(context, jobs)]);
  return computeCapacity(context);
}
