// SPDX-License-Identifier: Apache-2.0
// What the hosts have left, read by a process that does not drive. Changes nothing.
import { CapacityForecast } from '../capacity/capacity-forecast.ts';
import { updateForecast } from '../capacity/headroom.ts';
import { readAddresses } from '../capacity/taken-addresses.ts';
import { readTemplates } from '../capacity/templates.ts';
import type { DriverState } from '../context/driver-state.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import type { FleetOptions } from '../context/options.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { RecordCache } from '../records/record-cache.ts';
import { candidates } from './adopt.ts';
import { readWhatIsReadable } from './list-orphans.ts';

/** Throws an error if no region can be read. */
export async function readCapacity(
  options: FleetOptions,
  cache: RecordCache,
): Promise<CapacityForecast> {
  const { forecast, context } = await readForecast(options, cache);
  // The driver adopts VMs that have no record; until then they count as unmanaged.
  forecast.setAdopted(context.views.keys());
  return forecast;
}

/**
 * The same for a process that answers for the driver. Records are lost all together or not at all: where some exist, or no
 * VM may be ours, the driver has adopted its VMs. `state` keeps what was read of VMs until they change.
 */
export async function readSharedCapacity(
  options: FleetOptions,
  cache: RecordCache,
  state: DriverState,
): Promise<CapacityForecast> {
  const { forecast, context } = await readForecast(options, cache, state);
  const recorded = new Set(context.records.machines.map(({ placement }) => placement?.region));
  const adopted = [...context.views.values()].filter(
    (view) => recorded.has(view.region) || candidates(context, view).length === 0,
  );
  forecast.setAdopted(adopted.map(({ region }) => region));
  return forecast;
}

async function readForecast(options: FleetOptions, cache: RecordCache, state?: DriverState) {
  const { context, unread } = await readWhatIsReadable(options, cache, state);
  const [first] = unread.values();
  if (first !== undefined && context.views.size === 0) throw first;
  const jobs = immediateJobs(context);
  await jobs.settle([...readTemplates(context, jobs), ...readAddresses(context, jobs)]);
  const forecast = new CapacityForecast();
  forecast.setViews(
    context.views,
    Object.fromEntries(Array.from(unread, ([region, { message }]) => [region, message])),
  );
  await updateForecast(context, forecast);
  return { forecast, context };
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
