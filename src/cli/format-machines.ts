// SPDX-License-Identifier: Apache-2.0
import { formatBytes, formatCount } from '../model/format-text.ts';
import type { Machine } from '../model/machine.ts';

/** A machine has no name before it is placed. */
export function displayName({ id, placement }: Pick<Machine, 'id' | 'placement'>): string {
  return placement?.name ?? id;
}

export function formatGone(count: number): string {
  return `${formatCount(count, 'machine')} ${count === 1 ? 'is' : 'are'} gone`;
}

export function formatMachineSize({ cpu, memoryBytes, diskBytes }: Machine['size']): string {
  return `${formatCount(cpu, 'CPU')}, ${formatBytes(memoryBytes)}, disk ${formatBytes(diskBytes)}`;
}
