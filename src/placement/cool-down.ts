// SPDX-License-Identifier: Apache-2.0

/**
 * How long a freed VM id or address is not reassigned. ARP and neighbour caches, DHCP and DNS entries and the
 * Cluster Autoscaler's cache of instances must expire first.
 */
export const COOL_DOWN_MS = 30 * 60_000;

/**
 * Time until it may be reassigned; 0 after the cool-down. At most one whole cool-down, even if the clock was
 * set back.
 */
export function coolDownLeftMs(freedAt: number, now: number, coolDownMs: number): number {
  return Math.min(Math.max(freedAt + coolDownMs - now, 0), coolDownMs);
}

export function formatMinutes(ms: number): string {
  return `${Math.ceil(ms / 60_000)} min`;
}
