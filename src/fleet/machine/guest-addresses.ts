// SPDX-License-Identifier: Apache-2.0
// Addresses that a guest has by DHCP, read from its agent for people. An agent that does not answer holds a worker of
// Proxmox's API for seconds, so a host is asked for one machine at a time, and a machine with growing delays.
import type { Machine } from '../../model/machine.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

/** Names of network cards in Linux guests; others are bridges and tunnels of the cluster. */
const CARD_NAME = /^e(n|th)/;
const INITIAL_DELAY_MS = 60_000;
const MAX_DELAY_MS = 60 * 60_000;
/** No other agent on the host is asked for so long after one that did not answer. */
const HOST_PAUSE_MS = 10_000;

/** Whether the addresses are unknown and may be asked for now. Called for every machine in every pass. */
export function areAddressesDue({ state, clock }: ReconcileContext, machine: Machine): boolean {
  const { id, placement, guestAddresses = [] } = machine;
  if (placement === undefined || placement.addresses.length + guestAddresses.length > 0)
    return false;
  const now = clock.monotonic();
  const isPaused = (key: string) => (state.addressReads.get(key)?.notBefore ?? now) > now;
  return !isPaused(id) && !isPaused(hostKey(placement));
}

/** Reads and records the addresses if they are due. An agent that does not answer is no error. */
export async function recordGuestAddresses(reconcile: MachineReconcile): Promise<void> {
  const { context, id, placement, hypervisor, machine, vm } = reconcile;
  if (!areAddressesDue(context, machine)) return;
  const reads = context.state.addressReads;
  const host = hostKey(placement);
  reads.set(host, { notBefore: Number.POSITIVE_INFINITY, count: 0 });
  const guestAddresses = await hypervisor
    .guestInterfaces(vm, context.readOptions)
    .then((interfaces) =>
      interfaces
        .filter(({ name }) => CARD_NAME.test(name))
        .flatMap(({ addresses }) => [...addresses]),
    )
    .catch((error: unknown) => {
      if (error instanceof PvescalerError && error.code !== 'CANCELLED') return undefined;
      throw error;
    })
    .finally(() => reads.delete(host));
  if (guestAddresses !== undefined && guestAddresses.length > 0) {
    reads.delete(id);
    return reconcile.update({ guestAddresses });
  }
  const now = context.clock.monotonic();
  if (guestAddresses === undefined) reads.set(host, { notBefore: now + HOST_PAUSE_MS, count: 0 });
  const count = (reads.get(id)?.count ?? 0) + 1;
  const delayMs = Math.min(INITIAL_DELAY_MS * 2 ** (count - 1), MAX_DELAY_MS);
  reads.set(id, { notBefore: now + delayMs, count });
}

function hostKey({ region, host }: { readonly region: string; readonly host: string }): string {
  return `${region} ${host}`;
}
