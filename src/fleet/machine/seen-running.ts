// SPDX-License-Identifier: Apache-2.0
import type { MachineReconcile } from '../context/machine-reconcile.ts';

/** The overview is some seconds late, which here costs nothing but those seconds. */
export function isSeenRunning({ placement, context }: MachineReconcile): boolean {
  return context.vmInView(placement)?.power === 'running';
}
