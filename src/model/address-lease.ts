// SPDX-License-Identifier: Apache-2.0
import type { MachineId } from './machine-id.ts';

/** One static address, held by one machine. Written before the machine's placement names it. */
export interface AddressLease {
  /** Canonical text without prefix length: `10.10.10.11`, `2001:db8::5`. */
  readonly address: string;
  readonly region: string;
  readonly pool: string;
  readonly machine: MachineId;
  readonly leasedAt: number;
  /** Set when the machine is gone. The address is not handed out again until it has cooled down. */
  readonly releasedAt?: number;
}

/** Two regions may use the same private range; the region is part of the key. */
export function addressLeaseKey(region: string, address: string): string {
  return `${region}/${address}`;
}
