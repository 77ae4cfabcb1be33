// SPDX-License-Identifier: Apache-2.0
// Limits the VMs that are destroyed at the same time, of machines and of orphans together.
import type { Machine } from '../../model/machine.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { type OrphanTask, timeKey } from '../context/driver-state.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { ConcurrencyLimits, type InProgress } from './place.ts';

/** Whether as many VMs as allowed are being destroyed on the host or storage. `own`: what is to be destroyed. */
export function isDestroyLimited(
  context: ReconcileContext,
  { region, host, diskStorage }: NonNullable<InProgress['placement']>,
  own: string,
): boolean {
  const view = context.views.get(region);
  if (view === undefined) return false;
  const machines = context.records.index
    .inPhase('deleting')
    .filter((machine) => machine.id !== own && isBeingDestroyed(context, view, machine));
  const orphans = [...context.state.orphanTasks]
    .filter(([key, task]) => key !== own && isOrphanBeingDestroyed(context, view, task))
    .map(([, { placement }]) => ({ placement }));
  const { deletesPerHost: perHost, deletesPerStorage: perStorage } = context.region(region).limits;
  const limits = new ConcurrencyLimits(view, [...machines, ...orphans], { perHost, perStorage });
  return limits.isHostBusy(host) || limits.isStorageBusy(host, diskStorage);
}

/** A task of a host that is down, or that is older than any task may be, does not delay other deletions. */
function isBeingDestroyed(
  { state, settings, clock }: ReconcileContext,
  view: RegionView,
  { id, task, placement }: Machine,
): boolean {
  if (state.destroying.has(id)) return true;
  const { region } = view;
  if (task?.kind !== 'destroy' || placement?.region !== region) return false;
  const ageMs = state.driverTime.elapsedMs(timeKey(id, 'task'), task.startedAt, clock);
  const isOverdue = ageMs > (settings.regions[region]?.taskTimeoutMs ?? 0);
  return !isOverdue && isOnline(view, task.host ?? placement.host);
}

function isOrphanBeingDestroyed(
  context: ReconcileContext,
  view: RegionView,
  { kind, placement, startedAt }: OrphanTask,
): boolean {
  if (kind !== 'destroy' || placement.region !== view.region) return false;
  const ageMs = context.clock.monotonic() - startedAt;
  return ageMs <= context.region(view.region).taskTimeoutMs && isOnline(view, placement.host);
}

function isOnline({ hosts }: RegionView, host: string): boolean {
  return hosts.some(({ name, online }) => name === host && online);
}
