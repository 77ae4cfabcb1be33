// SPDX-License-Identifier: Apache-2.0
// Removes a VM of ours that has no machine: a creation took effect after its machine was abandoned. Called again after
// each step, with a configuration that was just read and is ours.
import type { Marker } from '../../model/marker.ts';
import { TaskFailed } from '../../ports/errors.ts';
import type { TaskRef, VmConfig, VmRef, VmState } from '../../ports/hypervisor.ts';
import { type ReconcileResult, requeue } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

const POLL_MS = 1_000;

interface OrphanedVm {
  readonly config: VmConfig;
  readonly marker: Marker;
  readonly why: string;
}

export async function removeOrphanedVm(
  context: ReconcileContext,
  region: string,
  { config, marker, why }: OrphanedVm,
): Promise<ReconcileResult> {
  const hypervisor = context.hypervisor(region);
  const { vmId, host } = config;
  const key = `${region}/${vmId}`;
  if (await isTaskRunning(context, region, vmId)) return requeue(POLL_MS, 'a task is running');
  await context.recordOnce(`orphan ${key}`, {
    kind: 'saw',
    subject: { region, host },
    reason: 'OrphanVm',
    message: `removing VM ${vmId}, which is ours and has no machine: ${why}`,
    numbers: { vmId },
  });
  const { power } = await hypervisor.vmState(config, context.readOptions);
  // A clone that was never configured has its template's protection; any other was protected by a person.
  if (power !== 'running' && config.isProtected && config.smbiosUuid !== marker.machine) {
    const { digest } = config;
    await hypervisor.removeProtection(config, { digest, ...context.writeOptions() });
    return requeue(0, 'its protection was removed');
  }
  return stopOrDestroy(context, region, { ...config, power });
}

export async function stopOrDestroy(
  context: ReconcileContext,
  region: string,
  { power, ...vm }: VmRef & Pick<VmState, 'power'>,
): Promise<ReconcileResult> {
  const hypervisor = context.hypervisor(region);
  const task =
    power === 'running'
      ? await hypervisor.stopVm(vm, context.writeOptions())
      : await hypervisor.destroyVm(vm, context.writeOptions());
  if (task !== undefined) context.state.orphanTasks.set(`${region}/${vm.vmId}`, task);
  return requeue(POLL_MS, 'a task was started');
}

/** Throws the failure of a task that has ended. */
export async function isTaskRunning(
  context: ReconcileContext,
  region: string,
  vmId: number,
): Promise<boolean> {
  const key = `${region}/${vmId}`;
  const task: TaskRef | undefined = context.state.orphanTasks.get(key);
  if (task === undefined) return false;
  const status = await context.hypervisor(region).task(task, context.readOptions);
  if (status.state === 'running') return true;
  context.state.orphanTasks.delete(key);
  if (!status.succeeded) throw status.failure ?? new TaskFailed('TASK_FAILED', status.message);
  return false;
}
