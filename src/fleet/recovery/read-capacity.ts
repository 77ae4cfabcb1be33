// SPDX-License-Identifier: Apache-2.0
// What the hosts have left, read by a process that does not drive. Changes nothing.
import { CapacityForecast } from '../capacity/capacity-forecast.ts';
import { updateForecast } from '../capacity/headroom.ts';
import { readAddresses } from '../capacity/taken-addresses.ts';
import { readTemplates } from '../capacity/templates.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import type { FleetOptions } from '../context/options.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { RecordCache } from '../records/record-cache.ts';
import { readWhatIsReadable } from './list-orphans.ts';

/** Throws an error if no region can be read. */
export async function readCapacity(
  options: FleetOptions,
  cache: RecordCache,
): Promise<CapacityForecast> {
  const { context, unread } = await readWhatIsReadable(options, cache);
  const [first] = unread.values();
  if (first !== undefined && context.views.size === 0) throw first;
  const jobs = immediateJobs(context);
  await jobs.settle([...readTemplates(context, jobs), ...readAddresses(context, jobs)]);
  const forecast = new CapacityForecast();
  forecast.setViews(
    context.views,
    Object.fromEntries(Array.from(unread, ([region, { message }]) => [region, message])),
  );
  // The driver adopts VMs that have no record; until then they count as unmanaged.
  forecast.setAdopted(context.views.keys());
  await updateForecast(context, forecast);
  return forecast;
}

/** Runs each job at once, and once. A VM or template that cannot be read stays unknown, as in a pass. */
export function immediateJobs(context: ReconcileContext): HostJobs {
  const running = new Map<string, Promise<unknown>>();
  return {
    start: (key, _target, job) => {
      if (!running.has(key))
        running.set(
          key,
          job(context).catch(() => undefined),
        );
    },
    settle: async (keys) => {
      await Promise.all(keys.flatMap((key) => running.get(key) ?? []));
    },
  };
}
