// SPDX-License-Identifier: Apache-2.0
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { ReconcileResult } from '../context/reconcile-result.ts';
import { lookUpOwnVm } from './vm-lookup.ts';

/** Starts a VM that stopped before the machine was ready. Undefined while it runs. */
export async function startIfStopped(
  reconcile: MachineReconcile,
): Promise<ReconcileResult | undefined> {
  const { context, placement, vm, hypervisor } = reconcile;
  // The view is some seconds old, which delays the restart by as much and costs no request.
  if (context.vmInView(placement)?.power === 'running') return undefined;
  const { power } = await hypervisor.vmState(vm, context.readOptions);
  if (power === 'running') return undefined;
  await lookUpOwnVm(reconcile);
  return reconcile.recordTask(await hypervisor.startVm(reconcile.vm, context.writeOptions));
}
