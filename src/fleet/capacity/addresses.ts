// SPDX-License-Identifier: Apache-2.0
// Chooses the static addresses of a pool's next machine in a region, and counts how many machines can have some.
import type { AddressLease } from '../../model/address-lease.ts';
import type { MachineId } from '../../model/machine.ts';
import { type AddressChoice, chooseAddresses, countFreeAddresses } from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { takenAddresses } from './taken-addresses.ts';

interface AddressScope {
  readonly view: RegionView;
  readonly pool: PoolSettings;
}

interface Unknown {
  readonly chosen: false;
  readonly code: 'VIEW_STALE';
  readonly message: string;
}

/** Counting reads few configurations per pass, so that a host that does not answer cannot delay every pass. */
const READS_TO_COUNT = 16;

export async function addressesFor(
  context: ReconcileContext,
  where: AddressScope,
  machine: MachineId,
): Promise<AddressChoice | Unknown> {
  const unknown = unknownAddresses(context, where);
  if (unknown !== undefined) return unknown;
  const taken = isStatic(where.pool) ? await takenAddresses(context, where.view) : [];
  return chooseAddresses({ ...common(context, where, []), machine, taken });
}

/** The same after `held` addresses, which machines that are placed earlier will get; nothing is written. */
export async function addressesBeside(
  context: ReconcileContext,
  where: AddressScope,
  { machine, held }: { readonly machine: MachineId; readonly held: readonly AddressLease[] },
): Promise<AddressChoice | Unknown> {
  const unknown = unknownAddresses(context, where);
  if (unknown !== undefined) return unknown;
  const taken = await takenToCount(context, where);
  return chooseAddresses({ ...common(context, where, held), machine, taken });
}

/** For how many machines there are addresses. */
export async function freeAddresses(
  context: ReconcileContext,
  where: AddressScope,
  { held, atMost }: { readonly held: readonly AddressLease[]; readonly atMost: number },
): Promise<{ readonly count: number; readonly reason: string | undefined }> {
  if (!isStatic(where.pool)) return { count: atMost, reason: undefined };
  const unknown = unknownAddresses(context, where);
  if (unknown !== undefined) return { count: 0, reason: unknown.message };
  const taken = await takenToCount(context, where);
  return countFreeAddresses({ ...common(context, where, held), taken }, atMost);
}

function takenToCount(
  context: ReconcileContext,
  { pool, view }: AddressScope,
): Promise<readonly string[]> {
  return isStatic(pool) ? takenAddresses(context, view, READS_TO_COUNT) : Promise.resolve([]);
}

function common(
  context: ReconcileContext,
  { pool, view }: AddressScope,
  held: readonly AddressLease[],
) {
  return {
    region: view.region,
    v4: pool.network.v4,
    v6: pool.network.v6,
    leases: held.length === 0 ? context.records.addresses : [...context.records.addresses, ...held],
    now: context.now,
  };
}

/** After a loss of the records, a VM that cannot be read may have any address. */
function unknownAddresses(
  { unreadVms }: ReconcileContext,
  { view, pool }: AddressScope,
): Unknown | undefined {
  const vm = unreadVms.get(view.region);
  if (vm === undefined || !isStatic(pool)) return undefined;
  const message = `VM ${vm.vmId} on host ${vm.host} cannot be read: its addresses might be given out twice`;
  return { chosen: false, code: 'VIEW_STALE', message };
}

function isStatic({ network }: PoolSettings): boolean {
  return network.v4.kind === 'static' || network.v6.kind === 'static';
}
