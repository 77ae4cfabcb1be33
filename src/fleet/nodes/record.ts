// SPDX-License-Identifier: Apache-2.0
import type { ClusterNode } from '../../ports/cluster.ts';
import type { Job } from '../lifecycle/job.ts';

/** Once a Node exists, what it says of itself is the truth: name, uid and provider id, verbatim. */
export async function recordNode(job: Job, { name, uid, providerId }: ClusterNode): Promise<void> {
  const { nodeName, nodeUid, providerId: known } = job.machine;
  const isNew = nodeName !== name || nodeUid !== uid || (providerId !== '' && known !== providerId);
  if (!isNew) return;
  await job.update({ nodeName: name, nodeUid: uid, ...(providerId !== '' && { providerId }) });
}
