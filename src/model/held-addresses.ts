// SPDX-License-Identifier: Apache-2.0
// Which static addresses a machine holds. There is no record of an address: this follows from the record of its machine.
import type { Machine, MachineId } from './machine.ts';

/** Static addresses of a machine, with or without prefix length. */
export interface HeldAddresses {
  readonly machine: MachineId;
  readonly addresses: readonly string[];
  /** When the machine was gone; absent while it has them. */
  readonly releasedAt?: number;
}

type AddressRecord = Pick<Machine, 'id' | 'phase' | 'phaseSince' | 'placement' | 'isVmLeft'>;

/** A machine that returned to `requested` still holds the addresses of its last placement. */
export function heldAddressesOf({
  id: machine,
  phase,
  phaseSince,
  placement,
  isVmLeft,
}: AddressRecord): HeldAddresses {
  const isOver = (phase === 'gone' || phase === 'failed') && isVmLeft !== true;
  const addresses = placement?.addresses ?? [];
  return { machine, addresses, ...(isOver && { releasedAt: phaseSince }) };
}

/** The addresses that the machines have now. */
export function addressesInUse(machines: readonly AddressRecord[]): readonly string[] {
  const held = machines.map(heldAddressesOf).filter(({ releasedAt }) => releasedAt === undefined);
  return held.flatMap(({ addresses }) => addresses);
}
