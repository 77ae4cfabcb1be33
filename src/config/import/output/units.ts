// SPDX-License-Identifier: Apache-2.0
// Amounts of the other systems, written our way.

import { accepted, type Parsed, refused } from '../../../model/parsed.ts';

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

/** A size as Proxmox writes it (`32G`, `1.5T`; a bare number is bytes) to a whole number of MiB, rounded up. */
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

const OCTET = /^(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)$/;

export function isIpv4(text: string): boolean {
  const parts = text.split('.');
  return parts.length === 4 && parts.every((part) => OCTET.test(part));
}

/** A netmask such as 255.255.255.0 as a prefix length. */
export function netmaskToPrefix(text: string): number | undefined {
  if (!isIpv4(text)) return undefined;
  const bits = text
    .split('.')
    .map((part) => Number(part).toString(2).padStart(8, '0'))
    .join('');
  return /^1*0*$/.test(bits) ? bits.lastIndexOf('1') + 1 : undefined;
}
