// SPDX-License-Identifier: Apache-2.0
// Whether a machine's VM exists and is ours. Looked up again before every change and every destruction.
import type { Machine } from '../../model/machine.ts';
import { type Marker, verifyOwnership } from '../../model/marker.ts';
import { Conflict, NotFound } from '../../ports/errors.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import { isVmGone } from '../context/machine-error.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';

export interface OwnVm {
  readonly kind: 'ours';
  readonly config: VmConfig;
  readonly marker: Marker;
}

export type VmLookup =
  | { readonly kind: 'absent' }
  /** It is being created or restored: its owner is not known until the lock is released. */
  | { readonly kind: 'undecided'; readonly lock: string }
  | OwnVm
  /** `isSameVm`: it is still the machine's VM, but a person has taken it over. */
  | { readonly kind: 'foreign'; readonly reason: string; readonly isSameVm: boolean };

export async function lookUpVm(reconcile: MachineReconcile): Promise<VmLookup> {
  const config = await readConfig(reconcile);
  if (config === undefined) return { kind: 'absent' };
  const lookup = classifyVm(config, reconcile.machine, reconcile.context.settings.cluster);
  if (lookup.kind === 'ours' && config.host !== reconcile.placement.host) {
    await reconcile.update({ placement: { ...reconcile.placement, host: config.host } });
    await reconcile.record({
      kind: 'saw',
      reason: 'MachineMoved',
      message: `VM ${config.vmId} has moved to host ${config.host}`,
    });
  }
  return lookup;
}

/** Throws unless the VM exists and is ours. */
export async function lookUpOwnVm(reconcile: MachineReconcile): Promise<OwnVm> {
  const lookup = await lookUpVm(reconcile);
  const { vmId } = reconcile.vm;
  switch (lookup.kind) {
    case 'ours':
      return lookup;
    case 'undecided':
      // A backup may be being restored in its place; afterwards it is ours or not.
      throw new Conflict('VM_LOCKED', `VM ${vmId} is locked (${lookup.lock})`);
    case 'foreign':
      throw new NotFound('VM_NOT_FOUND', `VM ${vmId} is not ours any more: ${lookup.reason}`);
    case 'absent':
      throw new NotFound('VM_NOT_FOUND', `VM ${vmId} is gone`);
  }
}

async function readConfig(reconcile: MachineReconcile): Promise<VmConfig | undefined> {
  try {
    return await reconcile.hypervisor.vmConfig(reconcile.vm, reconcile.context.readOptions);
  } catch (error) {
    if (isVmGone(error)) return undefined;
    throw error;
  }
}

function classifyVm(config: VmConfig, machine: Machine, cluster: string): VmLookup {
  if (config.isBeingCreated) return { kind: 'undecided', lock: config.lock ?? '' };
  const foreign = (reason: string): VmLookup => {
    const isSameVm = config.smbiosUuid === machine.id && !config.isTemplate;
    return { kind: 'foreign', reason, isSameVm };
  };
  const ownership = verifyOwnership(
    { ...config, configured: machine.configured === true },
    cluster,
  );
  if (!ownership.owned) return foreign(ownership.reason);
  const { marker } = ownership;
  if (marker.machine !== machine.id) return foreign(`it is the VM of machine ${marker.machine}`);
  if (config.isTemplate) return foreign('it was converted to a template');
  return { kind: 'ours', config, marker };
}
