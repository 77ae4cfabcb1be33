// SPDX-License-Identifier: Apache-2.0
// What has become of a machine is written on its VM before it is written down here: whoever finds the VM without
// our records must neither revive one that was being deleted nor give one up that has been ready.
import { type Marker, withMarker } from '../../model/marker.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import { isProtected } from './inherited.ts';
import type { VmLookup } from './vm-lookup.ts';

type Milestone = 'readySinceSeconds' | 'deletingSinceSeconds';

export async function writeMilestone(
  reconcile: MachineReconcile,
  { config, marker }: Extract<VmLookup, { kind: 'ours' }>,
  milestone: Milestone,
): Promise<void> {
  if (marker[milestone] !== undefined) return;
  const next: Marker = { ...marker, [milestone]: Math.floor(reconcile.context.now / 1_000) };
  const set = { description: withMarker(config.description ?? '', next) };
  const remove = milestone === 'deletingSinceSeconds' ? templates(reconcile, config) : [];
  // The digest refuses the change if somebody else wrote meanwhile: their words are kept.
  await reconcile.hypervisor.configureVm(
    reconcile.vm,
    { set, remove, digest: config.digest },
    reconcile.context.writeOptions,
  );
}

/** A clone that was never configured has its template's protection; any other has a person's. */
function templates({ machine }: MachineReconcile, config: VmConfig): readonly string[] {
  return machine.configured !== true && isProtected(config) ? ['protection'] : [];
}
