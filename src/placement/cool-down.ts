// SPDX-License-Identifier: Apache-2.0

/**
 * How long a VM id or an address rests after it was freed: ARP and neighbour caches, DHCP and DNS entries, and
 * the Cluster Autoscaler's memory of an instance must have forgotten who had it.
 */
export const COOL_DOWN_MS = 30 * 60_000;

/** How long until it may be given out again; 0 once it has rested. Told as one whole rest after the clock was set back. */
export function restLeftMs(freedAt: number, now: number, coolDownMs: number): number {
  return Math.min(Math.max(freedAt + coolDownMs - now, 0), coolDownMs);
}

export function inMinutes(ms: number): string {
  return `${Math.ceil(ms / 60_000)} min`;
}
