// SPDX-License-Identifier: Apache-2.0
// Is the VM there, and is it ours? Asked anew before every change and every destruction.
import type { Machine } from '../../model/machine.ts';
import { judgeOwnership, type Marker } from '../../model/marker.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import { isBeingMade } from './being-made.ts';
import type { Job } from './job.ts';

export type Sight =
  | { readonly kind: 'absent' }
  /** It is being made: it has the lock of that, and nobody can say whose it will be. */
  | { readonly kind: 'undecided'; readonly lock: string }
  | { readonly kind: 'ours'; readonly config: VmConfig; readonly marker: Marker }
  /** `isSameVm`: it is the machine's VM all the same, and somebody took it over. */
  | { readonly kind: 'foreign'; readonly reason: string; readonly isSameVm: boolean };

export async function look(job: Job): Promise<Sight> {
  const config = await configOf(job);
  if (config === undefined) return { kind: 'absent' };
  const sight = judge(config, job.machine, job.turn.settings.cluster);
  if (sight.kind === 'ours' && config.host !== job.placement.host) {
    await job.update({ placement: { ...job.placement, host: config.host } });
    await job.tell({
      kind: 'saw',
      reason: 'MachineMoved',
      message: `VM ${config.vmId} is on host ${config.host} now`,
    });
  }
  return sight;
}

async function configOf(job: Job): Promise<VmConfig | undefined> {
  try {
    return await job.hypervisor.vmConfig(job.vm, job.turn.reading);
  } catch (error) {
    if (isVmGone(error)) return undefined;
    throw error;
  }
}

export function isVmGone(error: unknown): boolean {
  return error instanceof PvescalerError && error.code === 'VM_NOT_FOUND';
}

function judge(config: VmConfig, machine: Machine, cluster: string): Sight {
  if (isBeingMade(config)) return { kind: 'undecided', lock: config.lock ?? '' };
  const foreign = (reason: string): Sight => {
    const isSameVm = config.smbiosUuid === machine.id && !config.isTemplate;
    return { kind: 'foreign', reason, isSameVm };
  };
  const ownership = judgeOwnership({ ...config, configured: machine.configured === true }, cluster);
  if (!ownership.owned) return foreign(ownership.reason);
  const { marker } = ownership;
  if (marker.machine !== machine.id) return foreign(`it is machine ${marker.machine}`);
  if (config.isTemplate) return foreign('somebody made a template of it');
  return { kind: 'ours', config, marker };
}
