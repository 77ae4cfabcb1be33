// SPDX-License-Identifier: Apache-2.0
// What has become of a machine is written on its VM before it is written down here: whoever finds the VM without
// our records must neither revive one that was being deleted nor give one up that has been ready.
import { type Marker, withMarker } from '../../model/marker.ts';
import type { VmConfig } from '../../ports/hypervisor.ts';
import { isProtected } from './inherited.ts';
import type { Job } from './job.ts';
import type { Sight } from './look.ts';

type Milestone = 'readySinceSeconds' | 'deletingSinceSeconds';

export async function mark(
  job: Job,
  { config, marker }: Extract<Sight, { kind: 'ours' }>,
  milestone: Milestone,
): Promise<void> {
  if (marker[milestone] !== undefined) return;
  const next: Marker = { ...marker, [milestone]: Math.floor(job.turn.now / 1_000) };
  const set = { description: withMarker(config.description ?? '', next) };
  const remove = milestone === 'deletingSinceSeconds' ? templates(job, config) : [];
  // The digest refuses the change if somebody else wrote meanwhile: their words are kept.
  await job.hypervisor.configureVm(job.vm, { set, remove, digest: config.digest }, job.turn.acting);
}

/** A clone that was never configured has its template's protection; any other has a person's. */
function templates({ machine }: Job, config: VmConfig): readonly string[] {
  return machine.configured !== true && isProtected(config) ? ['protection'] : [];
}
