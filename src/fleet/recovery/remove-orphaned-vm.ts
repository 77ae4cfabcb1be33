// SPDX-License-Identifier: Apache-2.0
// Removes a VM of ours that has no machine: a creation took effect after its machine was abandoned. Called again after
// each step, with a configuration that was just read and is ours.
import type { Marker } from '../../model/marker.ts';
import { PvescalerError, TaskFailed } from '../../ports/errors.ts';
import type { TaskRef, TaskStatus, VmConfig, VmState } from '../../ports/hypervisor.ts';
import { isDestroyLimited } from '../capacity/deletion-limits.ts';
import { isTaskOver, type ReconcileResult, requeue } from '../context/machine-reconcile.ts';
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
  return stopOrDestroy(context, region, { config, power });
}

export async function stopOrDestroy(
  context: ReconcileContext,
  region: string,
  { config, power }: { readonly config: VmConfig } & Pick<VmState, 'power'>,
): Promise<ReconcileResult> {
  const { vmId, host, bootDisk } = config;
  const hypervisor = context.hypervisor(region);
  const { orphanTasks } = context.state;
  const key = `${region}/${vmId}`;
  const placement = { region, host, diskStorage: bootDisk?.storage ?? '' };
  const kind = power === 'running' ? 'stop' : 'destroy';
  if (kind === 'destroy' && isDestroyLimited(context, placement, key)) {
    return requeue(POLL_MS, 'other deletions are running on its host or storage');
  }
  const started = { kind, placement, startedAt: context.clock.monotonic() } as const;
  // Counts before Proxmox has answered: several VMs are removed at the same time.
  orphanTasks.set(key, { ...started, task: undefined });
  let task: TaskRef | undefined;
  try {
    task =
      kind === 'stop'
        ? await hypervisor.stopVm({ vmId, host }, context.writeOptions())
        : await hypervisor.destroyVm({ vmId, host }, context.writeOptions());
  } finally {
    if (task === undefined) orphanTasks.delete(key);
    else orphanTasks.set(key, { ...started, task });
  }
  return requeue(POLL_MS, 'a task was started');
}

/** Throws the failure of a task that has ended. */
export async function isTaskRunning(
  context: ReconcileContext,
  region: string,
  vmId: number,
): Promise<boolean> {
  const { orphanTasks } = context.state;
  const key = `${region}/${vmId}`;
  const known = orphanTasks.get(key);
  if (known === undefined) return false;
  // A decision of a person about the same VM has just started it.
  if (known.task === undefined) return true;
  const status = await readStatus(context, { region, vmId }, known.task);
  if (status?.state === 'running') return true;
  orphanTasks.delete(key);
  if (status?.succeeded === false)
    throw status.failure ?? new TaskFailed('TASK_FAILED', status.message);
  return false;
}

/** Undefined when Proxmox no longer knows the task. */
async function readStatus(
  context: ReconcileContext,
  vm: { readonly region: string; readonly vmId: number },
  task: TaskRef,
): Promise<TaskStatus | undefined> {
  try {
    return await context.hypervisor(vm.region).task(task, context.readOptions);
  } catch (error) {
    if (error instanceof PvescalerError && isTaskOver(context, vm, { task, error }))
      return undefined;
    throw error;
  }
}
