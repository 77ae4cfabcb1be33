// SPDX-License-Identifier: Apache-2.0
// A selftest machine is created beside its pool's target to see whether machines become ready, and is deleted once it is.
import type { Marker } from './marker.ts';
import type { Taint } from './taints.ts';

/** Keeps pods off the Node; DaemonSets that tolerate everything still run there. */
export const SELFTEST_TAINT: Taint = {
  key: 'autoscaler.proxmox/selftest',
  value: 'true',
  effect: 'NoSchedule',
};

/** In the marker, so that the VM is deleted and not adopted as a member after a loss of the database. */
export const SELFTEST_FIELD = ['selftest', '1'] as const;

export function isSelftestMarker({ unknown = [] }: Marker): boolean {
  return unknown.some(([key]) => key === SELFTEST_FIELD[0]);
}
