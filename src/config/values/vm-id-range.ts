// SPDX-License-Identifier: Apache-2.0
// A range of VM ids, `1250-1300`, both ends included. Proxmox allows ids from 100 to 999999999.
import { accepted, type Parsed, refused } from '../../model/parsed.ts';

export interface VmIdRange {
  readonly from: number;
  readonly to: number;
}

export const VM_ID_MIN = 100;
export const VM_ID_MAX = 999_999_999;

/** Default of `proxmox.<region>.vmIds`. */
export const DEFAULT_VM_ID_RANGE: VmIdRange = { from: 20_000, to: 29_999 };

export function parseVmIdRange(text: string): Parsed<VmIdRange> {
  const [, first, last] = /^(\d{1,10})\s*-\s*(\d{1,10})$/.exec(text.trim()) ?? [];
  if (first === undefined || last === undefined) {
    return refused("must be a range of VM ids such as '1250-1300'");
  }
  const from = Number(first);
  const to = Number(last);
  if (from < VM_ID_MIN || to > VM_ID_MAX) {
    return refused(`is outside the VM ids that Proxmox allows, ${VM_ID_MIN} to ${VM_ID_MAX}`);
  }
  return from <= to ? accepted({ from, to }) : refused('ends before it starts');
}

export function formatVmIdRange({ from, to }: VmIdRange): string {
  return `${from}-${to}`;
}

export function vmIdCount({ from, to }: VmIdRange): number {
  return to - from + 1;
}

export function vmIdRangesOverlap(left: VmIdRange, right: VmIdRange): boolean {
  return left.from <= right.to && right.from <= left.to;
}
