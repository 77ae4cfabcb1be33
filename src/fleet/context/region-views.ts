// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../../ports/clock.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { Hypervisor, RegionView } from '../../ports/hypervisor.ts';
import type { WriteAuthority } from './driver-lease.ts';

const MAX_VIEW_AGE_MS = 60_000;

export interface RegionViews {
  /** Fresh views only: a region that is not in here decides nothing. */
  readonly views: ReadonlyMap<string, RegionView>;
  /** Why the other regions could not be read. */
  readonly stale: Readonly<Record<string, string>>;
}

interface Regions {
  readonly hypervisors: ReadonlyMap<string, Hypervisor>;
  readonly clock: Pick<Clock, 'now'>;
}

/** Passes that follow each other closely share a view: between them tasks change, not the region. */
export async function recentRegionViews(
  regions: Regions,
  { signal, viewAgeMs = 0 }: Pick<WriteAuthority, 'signal' | 'viewAgeMs'>,
  state: { views: RegionViews | undefined },
): Promise<RegionViews> {
  const known = state.views;
  const now = regions.clock.now();
  if (known !== undefined && isRecent(known, { since: now - viewAgeMs, now })) return known;
  state.views = await readRegionViews(regions, signal);
  return state.views;
}

/** A view from the future has an unknown age: the wall clock was set back since. */
function isRecent(
  { views, stale }: RegionViews,
  { since, now }: { readonly since: number; readonly now: number },
): boolean {
  const all = [...views.values()];
  const isNew = all.every(({ takenAt }) => takenAt > since && takenAt <= now);
  return Object.keys(stale).length === 0 && isNew;
}

export async function readRegionViews(
  { hypervisors, clock }: Regions,
  signal: AbortSignal | undefined,
): Promise<RegionViews> {
  const views = new Map<string, RegionView>();
  const stale: Record<string, string> = {};
  const read = async (name: string, hypervisor: Hypervisor) => {
    try {
      const view = await hypervisor.view({ signal });
      if (clock.now() - view.takenAt > MAX_VIEW_AGE_MS) stale[name] = 'its view is too old';
      else views.set(name, view);
    } catch (error) {
      if (!(error instanceof PvescalerError) || error.code === 'CANCELLED') throw error;
      stale[name] = error.message;
    }
  };
  await Promise.all([...hypervisors].map(([name, hypervisor]) => read(name, hypervisor)));
  return { views, stale };
}
