// SPDX-License-Identifier: Apache-2.0
import { DONE, type MachineReconcile, type ReconcileResult } from '../context/machine-reconcile.ts';

/** No front end starts a drain yet. A machine in this phase keeps its VM until it is deleted. */
export function draining(_reconcile: MachineReconcile): Promise<ReconcileResult> {
  return Promise.resolve(DONE);
}
