// SPDX-License-Identifier: Apache-2.0
// A VM without a record that is being created: its owner is unknown until the creation ends. It may be a machine of ours
// whose record was lost. That is bounded: another user's creation, or one that died, must not stop a pool for good.
import type { VmConfig } from '../../ports/hypervisor.ts';
import { isMachineError } from '../context/machine-error.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { halfMadeVmMessage } from '../machine/own-vm.ts';

const REPORT_AFTER_MS = 60_000;

/** Whether a creation of ours may still be behind it. Reports a VM that stays incomplete. */
export async function mayBecomeOurs(
  context: ReconcileContext,
  region: string,
  config: VmConfig,
): Promise<boolean> {
  const ageMs = incompleteForMs(context, region, config);
  if (ageMs < REPORT_AFTER_MS) return true;
  const mayBeOurs =
    ageMs < context.region(region).taskTimeoutMs && (await mayBeRunning(context, region, config));
  const { vmId, host, lock = '' } = config;
  await context.recordOnce(`${region}/${vmId}`, {
    kind: 'saw',
    subject: { region, host },
    reason: mayBeOurs ? 'VmUndecided' : 'HalfMadeVm',
    message: mayBeOurs
      ? `VM ${vmId} on ${host} is being created (lock '${lock}') and may be ours: until it is complete, no pool of region ${region} is filled up to its minimum`
      : halfMadeVmMessage(config, lock),
  });
  return mayBeOurs;
}

function incompleteForMs({ state, clock, views }: ReconcileContext, region: string, vm: VmConfig) {
  const { incompleteSince } = state;
  const key = (vmId: number) => `${region}/${vmId}`;
  const incomplete = views.get(region)?.vms.filter(({ isBeingCreated }) => isBeingCreated) ?? [];
  const keys = new Set(incomplete.map(({ vmId }) => key(vmId)));
  for (const known of incompleteSince.keys()) {
    if (known.startsWith(`${region}/`) && !keys.has(known)) incompleteSince.delete(known);
  }
  const now = clock.monotonic();
  const since = incompleteSince.get(key(vm.vmId)) ?? now;
  incompleteSince.set(key(vm.vmId), since);
  return now - since;
}

/** A clone task runs on the host of its source and does not name the new VM, so it is not searched. */
async function mayBeRunning(
  context: ReconcileContext,
  region: string,
  { vmId, host, lock }: VmConfig,
): Promise<boolean> {
  if (lock !== 'create') return true;
  try {
    const hypervisor = context.hypervisor(region);
    const running = await hypervisor.runningTasks(host, 'create', context.readOptions);
    return running.some(({ subject }) => subject === vmId);
  } catch (error) {
    if (isMachineError(error)) return true;
    throw error;
  }
}
