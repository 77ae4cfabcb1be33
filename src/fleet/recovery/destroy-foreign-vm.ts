// SPDX-License-Identifier: Apache-2.0
// Destroys a VM that is not ours. A person has typed its name, and the configuration is still the one that was shown.
import type { VmIntent } from '../../model/intent.ts';
import { mayHaveVm } from '../../model/machine.ts';
import { verifyOwnership } from '../../model/marker.ts';
import { Conflict, NotOwned } from '../../ports/errors.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import { isVmGone } from '../context/machine-error.ts';
import { DONE, type ReconcileResult, requeue } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { isTaskRunning, stopOrDestroy } from './remove-orphaned-vm.ts';

const POLL_MS = 1_000;

export function requireDestroyable(
  { records, settings }: ReconcileContext,
  region: string,
  vm: VmConfig,
): void {
  const { vmId } = vm;
  const machine = records.index.byVm(region, vmId);
  const { owned } = verifyOwnership(
    { ...vm, configured: true },
    { cluster: settings.cluster, region },
  );
  if (owned && machine !== undefined && mayHaveVm(machine.phase))
    throw new NotOwned('VM_NOT_OWNED', `VM ${vmId} is machine ${machine.id}`, {
      hint: `Delete it with pvescaler machine delete ${machine.id}.`,
    });
  if (vm.isBeingCreated)
    throw new Conflict('VM_LOCKED', `VM ${vmId} is being created (lock ${vm.lock ?? ''})`);
  if (vm.isProtected)
    throw new Conflict('VM_LOCKED', `VM ${vmId} is protected`, {
      hint: 'Remove its protection in the options of the VM in Proxmox first.',
    });
}

/** Called again after each step. */
export async function destroyForeignVm(
  context: ReconcileContext,
  intent: VmIntent,
): Promise<ReconcileResult> {
  const { region, vmId } = intent;
  if (await isTaskRunning(context, region, vmId)) return requeue(POLL_MS, 'a task is running');
  const seen = context.vmInView({ region, vmId });
  if (seen === undefined) return DONE;
  const hypervisor = context.hypervisor(region);
  const vm = await hypervisor.vmConfig(seen, context.readOptions).catch((error: unknown) => {
    if (isVmGone(error)) return undefined;
    throw error;
  });
  if (vm === undefined) return DONE;
  requireDestroyable(context, region, vm);
  requireSeen(vm, intent);
  // An earlier driver may have started it.
  const running = await hypervisor.runningTasks(vm.host, 'destroy', context.readOptions);
  if (running.some(({ subject }) => subject === vmId)) return requeue(POLL_MS, 'it is destroyed');
  const { power } = await hypervisor.vmState(vm, context.readOptions);
  return stopOrDestroy(context, region, { config: vm, power });
}

/** The person has decided on the configuration with this digest. */
export function requireSeen({ vmId, digest }: VmConfig, intent: Pick<VmIntent, 'digest'>): void {
  if (digest === intent.digest) return;
  throw new Conflict('VM_CHANGED', `VM ${vmId} was changed after it was shown`, {
    hint: 'Run the command again.',
  });
}
