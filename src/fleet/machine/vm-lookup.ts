// SPDX-License-Identifier: Apache-2.0
// Is the VM there, and is it ours? Asked anew before every change and every destruction.
import type { Machine } from '../../model/machine.ts';
import { judgeOwnership, type Marker } from '../../model/marker.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import { isBeingCreated } from '../context/being-created.ts';
import { isVmGone } from '../context/machine-error.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';

export type VmLookup =
  | { readonly kind: 'absent' }
  /** It is being made: it has the lock of that, and nobody can say whose it will be. */
  | { readonly kind: 'undecided'; readonly lock: string }
  | { readonly kind: 'ours'; readonly config: VmConfig; readonly marker: Marker }
  /** `isSameVm`: it is the machine's VM all the same, and somebody took it over. */
  | { readonly kind: 'foreign'; readonly reason: string; readonly isSameVm: boolean };

export async function lookUpVm(reconcile: MachineReconcile): Promise<VmLookup> {
  const config = await configOf(reconcile);
  if (config === undefined) return { kind: 'absent' };
  const lookup = classifyVm(config, reconcile.machine, reconcile.context.settings.cluster);
  if (lookup.kind === 'ours' && config.host !== reconcile.placement.host) {
    await reconcile.update({ placement: { ...reconcile.placement, host: config.host } });
    await reconcile.record({
      kind: 'saw',
      reason: 'MachineMoved',
      message: `VM ${config.vmId} is on host ${config.host} now`,
    });
  }
  return lookup;
}

async function configOf(reconcile: MachineReconcile): Promise<VmConfig | undefined> {
  try {
    return await reconcile.hypervisor.vmConfig(reconcile.vm, reconcile.context.readOptions);
  } catch (error) {
    if (isVmGone(error)) return undefined;
    throw error;
  }
}

function classifyVm(config: VmConfig, machine: Machine, cluster: string): VmLookup {
  if (isBeingCreated(config)) return { kind: 'undecided', lock: config.lock ?? '' };
  const foreign = (reason: string): VmLookup => {
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
