// SPDX-License-Identifier: Apache-2.0
import type { ClusterNode } from '../../ports/cluster.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';

/** Once a Node exists, its own name, uid and provider id are recorded verbatim. */
export async function recordNode(
  reconcile: MachineReconcile,
  { name, uid, providerId }: ClusterNode,
): Promise<void> {
  const { nodeName, nodeUid, providerId: known } = reconcile.machine;
  const isNew = nodeName !== name || nodeUid !== uid || (providerId !== '' && known !== providerId);
  if (!isNew) return;
  await reconcile.update({
    nodeName: name,
    nodeUid: uid,
    ...(providerId !== '' && { providerId }),
  });
}
