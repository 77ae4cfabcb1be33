// SPDX-License-Identifier: Apache-2.0
// Converts amounts of the source systems to the notation of our config.

import { accepted, type Parsed, refused } from '../../../model/parsed.ts';
import { parseIpAddress } from '../../values/ip-address.ts';

const MIB_PER_GIB = 1024;

/** 2048 → `2Gi`, 1500 → `1500Mi`. */
export function formatMiB(mib: number): string | number {
  if (mib === 0) return 0;
  return mib % MIB_PER_GIB === 0 ? `${mib / MIB_PER_GIB}Gi` : `${mib}Mi`;
}

/** 900 → `15m`, 90 → `90s`. */
export function formatSeconds(seconds: number): string {
  if (seconds !== 0 && seconds % 3600 === 0) return `${seconds / 3600}h`;
  return seconds !== 0 && seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
}

const MIB_PER_UNIT: Readonly<Record<string, number>> = { K: 1 / 1024, M: 1, G: 1024, T: 1024 ** 2 };

/** Parses a Proxmox size (`32G`, `1.5T`; a bare number is bytes) to whole MiB, rounded up. */
export function parseProxmoxSizeMiB(text: string): Parsed<number> {
  const [, sign, amount, unit] = /^(\+?)(\d+(?:\.\d+)?)([KMGT]?)$/.exec(text.trim()) ?? [];
  if (amount === undefined) return refused('must be a Proxmox disk size such as 20G');
  if (sign === '+') return refused('is relative to the size of the image, which is unknown');
  const mib = Number(amount) * (MIB_PER_UNIT[unit ?? ''] ?? 1 / 1024 ** 2);
  const whole = Math.ceil(mib);
  return whole > 0 && Number.isSafeInteger(whole)
    ? accepted(whole)
    : refused('is not a valid size');
}

/** Prefix length of a netmask such as 255.255.255.0. */
export function netmaskToPrefix(text: string): number | undefined {
  const address = parseIpAddress(text);
  if (!address.ok || address.value.family !== 4) return undefined;
  const bits = address.value.value.toString(2).padStart(32, '0');
  return /^1*0*$/.test(bits) ? bits.lastIndexOf('1') + 1 : undefined;
}
