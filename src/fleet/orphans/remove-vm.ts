// SPDX-License-Identifier: Apache-2.0
// Removes a VM of ours that has no machine to carry its deletion: the fruit of a call that came through after its
// machine had been given up. Rare, so it is done in one go.
import { judgeOwnership } from '../../model/marker.ts';
import { TaskFailed } from '../../ports/errors.ts';
import type { TaskRef, VmConfig } from '../../ports/hypervisor.ts';
import { isProtected } from '../lifecycle/inherited.ts';
import type { Turn } from '../turn.ts';

const POLL_MS = 1_000;

interface Orphan {
  readonly config: VmConfig;
  readonly why: string;
}

export async function removeVm(turn: Turn, region: string, { config, why }: Orphan): Promise<void> {
  const hypervisor = turn.hypervisor(region);
  const { vmId, host } = config;
  await turn.tell({
    kind: 'saw',
    subject: { region, host },
    reason: 'OrphanVm',
    message: `VM ${vmId} is ours and is removed: ${why}`,
    numbers: { vmId },
  });
  const { power } = await hypervisor.vmState(config, turn.reading);
  if (power === 'running') {
    await ended(turn, region, await hypervisor.stopVm(config, turn.acting));
  }
  const fresh = await hypervisor.vmConfig(config, turn.reading);
  const { cluster } = turn.settings;
  if (fresh.smbiosUuid !== config.smbiosUuid) return;
  const ownership = judgeOwnership({ ...fresh, configured: false }, cluster);
  if (!ownership.owned) return;
  // A clone that was never configured has its template's protection; any other has a person's.
  if (isProtected(fresh) && fresh.smbiosUuid !== ownership.marker.machine) {
    const change = { remove: ['protection'], digest: fresh.digest };
    await hypervisor.configureVm(fresh, change, turn.acting);
  }
  await ended(turn, region, await hypervisor.destroyVm(fresh, turn.acting));
}

async function ended(turn: Turn, region: string, task: TaskRef | undefined): Promise<void> {
  if (task === undefined) return;
  const giveUpAt = turn.now + turn.region(region).taskTimeoutMs;
  while (turn.now < giveUpAt) {
    const status = await turn.hypervisor(region).task(task, turn.reading);
    if (status.state === 'ended') {
      if (status.succeeded) return;
      throw status.failure ?? new TaskFailed('TASK_FAILED', status.message);
    }
    await turn.clock.sleep(POLL_MS, turn.reading);
  }
}
