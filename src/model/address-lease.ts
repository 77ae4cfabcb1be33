// SPDX-License-Identifier: Apache-2.0
import type { MachineId } from './machine.ts';

/** A static address held by one machine. Written before the machine's placement names the address. */
export interface AddressLease {
  /** Canonical text without prefix length: `10.10.10.11`, `2001:db8::5`. */
  readonly address: string;
  readonly region: string;
  readonly pool: string;
  readonly machine: MachineId;
  /** Of the machine. Absent in records of earlier versions. */
  readonly vmId?: number;
  readonly leasedAt: number;
  /** Set when the machine is gone. The address is assigned again only after its cool-down. */
  readonly releasedAt?: number;
}

/** The key contains the region because two regions may use the same private range. */
export function addressLeaseKey(region: string, address: string): string {
  return `${region}/${address}`;
}
