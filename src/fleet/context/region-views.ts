// SPDX-License-Identifier: Apache-2.0
import { PvescalerError } from '../../ports/errors.ts';
import type { Hypervisor, RegionView } from '../../ports/hypervisor.ts';
import type { WriteAuthority } from './driver-lease.ts';
import type { DriverState, RegionViews } from './driver-state.ts';
import type { FleetOptions } from './options.ts';

const VIEW_TOO_OLD_MS = 60_000;

/** Rounds that follow each other closely share a view: tasks are what moves between them, not the region. */
export async function recentRegionViews(
  options: FleetOptions,
  { signal, viewAgeMs = 0 }: Pick<WriteAuthority, 'signal' | 'viewAgeMs'>,
  state: DriverState,
): Promise<RegionViews> {
  const known = state.views;
  const now = options.clock.now();
  if (known !== undefined && isRecent(known, { since: now - viewAgeMs, now })) return known;
  state.views = await readRegionViews(options, signal);
  return state.views;
}

/** One from the future is as old as nobody knows: the wall clock was set back since. */
function isRecent(
  { views, stale }: RegionViews,
  { since, now }: { readonly since: number; readonly now: number },
): boolean {
  const all = [...views.values()];
  const isNew = all.every(({ takenAt }) => takenAt > since && takenAt <= now);
  return Object.keys(stale).length === 0 && isNew;
}

export async function readRegionViews(
  { hypervisors, clock }: FleetOptions,
  signal: AbortSignal | undefined,
): Promise<RegionViews> {
  const views = new Map<string, RegionView>();
  const stale: Record<string, string> = {};
  const read = async (name: string, hypervisor: Hypervisor) => {
    try {
      const view = await hypervisor.view({ signal });
      if (clock.now() - view.takenAt > VIEW_TOO_OLD_MS) stale[name] = 'its overview is too old';
      else views.set(name, view);
    } catch (error) {
      if (!(error instanceof PvescalerError) || error.code === 'CANCELLED') throw error;
      stale[name] = error.message;
    }
  };
  await Promise.all([...hypervisors].map(([name, hypervisor]) => read(name, hypervisor)));
  return { views, stale };
}
