// SPDX-License-Identifier: Apache-2.0
// The database may have been restored from a backup while no driver ran: a machine that the records only request may
// have a VM already, whose marker names it. It gets no second VM until every VM in the regions of its pool has been
// identified once. A machine that this process has requested cannot have a VM, nor one that was requested after the
// driver's first pass, so these are placed also while a host is down.
import type { Machine } from '../../model/machine.ts';
import type { Records } from '../records/records.ts';
import type { ReconcileContext } from './reconcile-context.ts';
import type { PoolSettings } from './settings.ts';

/** Machines without a VM in the records that an earlier driver may have created. */
export function requestedBefore({
  index,
  intents,
  requestedHere,
}: Pick<Records, 'index' | 'intents' | 'requestedHere'>): Set<string> {
  const requested = index.inPhase('requested', 'placed').map(({ id }) => id);
  const open = intents.filter(({ kind, state }) => kind === 'create' && state === 'open');
  const all = new Set<string>([...requested, ...open.flatMap(({ machines }) => machines)]);
  return all.difference(requestedHere);
}

/** Why the machine may have a VM that its record does not name; undefined if it has none. */
export function unknownVmReason(
  { state, unreadVms }: ReconcileContext,
  { id }: Pick<Machine, 'id'>,
  { regions }: Pick<PoolSettings, 'regions'>,
): string | undefined {
  if (state.requestedBefore?.has(id) !== true) return undefined;
  const region = regions.find((name) => !state.identifiedRegions.has(name));
  if (region === undefined) return undefined;
  const vm = unreadVms.get(region);
  const what = vm === undefined ? `region ${region}` : `VM ${vm.vmId} on host ${vm.host}`;
  return `${what} cannot be read since the driver started, and the machine may have a VM there`;
}
