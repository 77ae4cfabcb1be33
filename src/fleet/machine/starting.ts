// SPDX-License-Identifier: Apache-2.0
// starting → booting.
import type { MachineReconcile, ReconcileResult } from '../context/machine-reconcile.ts';

import { lookUpOwnVm, startVm } from './own-vm.ts';

export async function starting(reconcile: MachineReconcile): Promise<ReconcileResult> {
  const task = await reconcile.pollTask();
  if (task.state === 'running') return task.wait;
  const { readOptions } = reconcile.context;
  const { power } = await reconcile.hypervisor.vmState(reconcile.vm, readOptions);
  if (power === 'running') return reconcile.move('booting');
  await lookUpOwnVm(reconcile);
  return startVm(reconcile);
}
