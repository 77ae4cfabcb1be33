// SPDX-License-Identifier: Apache-2.0
// Removes a VM of ours that has no machine: a creation took effect after its machine was abandoned. Rare, so it runs
// to its end at once.
import { verifyOwnership } from '../../model/marker.ts';
import { TaskFailed } from '../../ports/errors.ts';
import type { TaskRef, VmConfig } from '../../ports/hypervisor.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

const POLL_MS = 1_000;

interface OrphanedVm {
  readonly config: VmConfig;
  readonly why: string;
}

export async function removeOrphanedVm(
  context: ReconcileContext,
  region: string,
  { config, why }: OrphanedVm,
): Promise<void> {
  const hypervisor = context.hypervisor(region);
  const { vmId, host } = config;
  await context.record({
    kind: 'saw',
    subject: { region, host },
    reason: 'OrphanVm',
    message: `removing VM ${vmId}, which is ours and has no machine: ${why}`,
    numbers: { vmId },
  });
  const { power } = await hypervisor.vmState(config, context.readOptions);
  if (power === 'running') {
    await waitForTask(context, region, await hypervisor.stopVm(config, context.writeOptions()));
  }
  const fresh = await hypervisor.vmConfig(config, context.readOptions);
  const { cluster } = context.settings;
  if (fresh.smbiosUuid !== config.smbiosUuid) return;
  const ownership = verifyOwnership({ ...fresh, configured: false }, cluster);
  if (!ownership.owned) return;
  // A clone that was never configured has its template's protection; any other was protected by a person.
  if (fresh.isProtected && fresh.smbiosUuid !== ownership.marker.machine) {
    const { digest } = fresh;
    await hypervisor.removeProtection(fresh, { digest, ...context.writeOptions() });
  }
  await waitForTask(context, region, await hypervisor.destroyVm(fresh, context.writeOptions()));
}

async function waitForTask(
  context: ReconcileContext,
  region: string,
  task: TaskRef | undefined,
): Promise<void> {
  if (task === undefined) return;
  const deadline = context.now + context.region(region).taskTimeoutMs;
  while (context.now < deadline) {
    const status = await context.hypervisor(region).task(task, context.readOptions);
    if (status.state === 'ended') {
      if (status.succeeded) return;
      throw status.failure ?? new TaskFailed('TASK_FAILED', status.message);
    }
    await context.clock.sleep(POLL_MS, context.readOptions);
  }
}
