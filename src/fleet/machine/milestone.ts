// SPDX-License-Identifier: Apache-2.0
// Writes into the VM's marker that the machine is ready or being deleted, before the record says so. After a loss of the
// records, a VM that was being deleted is not revived, and one that was ready is not deleted.
import { type Marker, withMarker } from '../../model/marker.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { OwnVm } from './vm-lookup.ts';

type Milestone = 'readySinceSeconds' | 'deletingSinceSeconds';

export async function writeMilestone(
  reconcile: MachineReconcile,
  { config, marker }: OwnVm,
  milestone: Milestone,
): Promise<void> {
  if (marker[milestone] !== undefined) return;
  const next: Marker = { ...marker, [milestone]: Math.floor(reconcile.context.now / 1_000) };
  const { description = '', digest } = config;
  // A clone that was never configured has its template's protection; any other was set by a person.
  const removeProtection =
    milestone === 'deletingSinceSeconds' &&
    reconcile.machine.configured !== true &&
    config.isProtected;
  // The digest refuses the change if the description was edited meanwhile: the edit is kept.
  await reconcile.hypervisor.setDescription(reconcile.vm, withMarker(description, next), {
    digest,
    removeProtection,
    ...reconcile.context.writeOptions,
  });
}
