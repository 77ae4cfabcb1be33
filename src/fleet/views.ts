// SPDX-License-Identifier: Apache-2.0
import { PvescalerError } from '../ports/errors.ts';
import type { Hypervisor, RegionView } from '../ports/hypervisor.ts';
import type { FleetOptions } from './options.ts';

const VIEW_TOO_OLD_MS = 60_000;

export interface Views {
  /** Fresh ones only. */
  readonly views: ReadonlyMap<string, RegionView>;
  /** Why the others could not be read. */
  readonly stale: Readonly<Record<string, string>>;
}

export async function readViews(
  { hypervisors, clock }: FleetOptions,
  signal: AbortSignal | undefined,
): Promise<Views> {
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
