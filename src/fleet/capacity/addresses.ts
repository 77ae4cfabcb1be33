// SPDX-License-Identifier: Apache-2.0
// Chooses the static addresses of a pool's next machine in a region, and counts how many machines can have some.
import { type HeldAddresses, heldAddressesOf } from '../../model/held-addresses.ts';
import type { MachineId } from '../../model/machine.ts';
import { type AddressChoice, chooseAddresses, countFreeAddresses } from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { findUnreadVm, hasStaticAddresses, takenAddresses } from './taken-addresses.ts';

interface AddressScope {
  readonly view: RegionView;
  readonly pool: PoolSettings;
}

interface Unknown {
  readonly chosen: false;
  readonly code: 'VIEW_STALE';
  readonly message: string;
}

export function addressesFor(
  context: ReconcileContext,
  where: AddressScope,
  machine: MachineId,
): AddressChoice | Unknown {
  return addressesBeside(context, where, { machine, held: [] });
}

/** The same after `held` addresses, which machines that are placed earlier will get; nothing is written. */
export function addressesBeside(
  context: ReconcileContext,
  where: AddressScope,
  { machine, held }: { readonly machine: MachineId; readonly held: readonly HeldAddresses[] },
): AddressChoice | Unknown {
  const unknown = unknownAddresses(context, where);
  if (unknown !== undefined) return unknown;
  const taken = takenIn(context, where);
  return chooseAddresses({ ...common(context, where, held), machine, taken });
}

/** For how many machines there are addresses. */
export function freeAddresses(
  context: ReconcileContext,
  where: AddressScope,
  { held, atMost }: { readonly held: readonly HeldAddresses[]; readonly atMost: number },
): { readonly count: number; readonly reason: string | undefined } {
  if (!hasStaticAddresses(where.pool)) return { count: atMost, reason: undefined };
  const unknown = unknownAddresses(context, where);
  if (unknown !== undefined) return { count: 0, reason: unknown.message };
  const taken = takenIn(context, where);
  return countFreeAddresses({ ...common(context, where, held), taken }, atMost);
}

function takenIn(context: ReconcileContext, { pool, view }: AddressScope): readonly string[] {
  return hasStaticAddresses(pool) ? takenAddresses(context, view) : [];
}

function common(
  context: ReconcileContext,
  { pool, view }: AddressScope,
  held: readonly HeldAddresses[],
) {
  return {
    v4: pool.network.v4,
    v6: pool.network.v6,
    held: [...context.records.index.withAddresses(view.region).map(heldAddressesOf), ...held],
    now: context.now,
  };
}

/** A VM that has not been read may have any address. */
function unknownAddresses(
  context: ReconcileContext,
  { view, pool }: AddressScope,
): Unknown | undefined {
  if (!hasStaticAddresses(pool)) return undefined;
  const vm = context.unreadVms.get(view.region) ?? findUnreadVm(context, view);
  if (vm === undefined) return undefined;
  const message = `VM ${vm.vmId} on host ${vm.host} cannot be read: its addresses might be given out twice`;
  return { chosen: false, code: 'VIEW_STALE', message };
}
