// SPDX-License-Identifier: Apache-2.0
// Nodes that our machines left behind: of our provider ids, with the label of a pool, silent, and without a VM. Both
// sides must be in sight all the while; one that is ready has a VM somewhere, whatever we see.
import { VMID_LABEL } from '../../bootstrap/index.ts';
import { mayExist } from '../../model/machine.ts';
import { readProviderId } from '../../model/provider-id.ts';
import type { Cluster, ClusterNode } from '../../ports/cluster.ts';
import { PvescalerError } from '../../ports/errors.ts';
import { isVmGone } from '../lifecycle/look.ts';
import { isLocalTrouble } from '../trouble.ts';
import type { Turn } from '../turn.ts';
import { isProven } from './match.ts';

interface Ghost {
  readonly node: ClusterNode;
  readonly region: string;
  readonly vmId: number;
}

export async function removeGhosts(turn: Turn): Promise<void> {
  const { sight, memory, settings } = turn;
  if (sight.kind !== 'fresh' || settings.cloudController) return;
  const suspects = ghostsIn(turn, sight.view.nodes);
  const uids = new Set(suspects.map(({ node }) => node.uid));
  for (const uid of memory.ghostSince.keys()) if (!uids.has(uid)) memory.ghostSince.delete(uid);
  for (const ghost of suspects) await consider(turn, sight.cluster, ghost);
}

/** What looks like a ghost from the two views alone. */
export function ghostsIn(turn: Turn, nodes: readonly ClusterNode[]): readonly Ghost[] {
  return nodes.flatMap((node) => {
    const id = readProviderId(node.providerId);
    if (id.kind !== 'vm' || node.ready || node.isTerminating || !isOfAPool(turn, node)) return [];
    if (node.labels[VMID_LABEL] !== String(id.vmId)) return [];
    const view = turn.views.get(id.region);
    if (view === undefined || view.takenVmIds.includes(id.vmId)) return [];
    return isClaimed(turn, node, id) ? [] : [{ node, region: id.region, vmId: id.vmId }];
  });
}

function isOfAPool(turn: Turn, { labels }: ClusterNode): boolean {
  const keys = Object.values(turn.settings.pools).map(({ groupLabel }) => groupLabel);
  return keys.some((key) => (labels[key] ?? '') !== '');
}

function isClaimed(
  { books }: Turn,
  node: ClusterNode,
  { region, vmId }: { readonly region: string; readonly vmId: number },
): boolean {
  return books.machines.some(
    ({ id, phase, placement, nodeUid }) =>
      mayExist(phase) &&
      (nodeUid === node.uid ||
        isProven(node, id) ||
        (placement?.region === region && placement.vmId === vmId)),
  );
}

async function consider(turn: Turn, cluster: Cluster, ghost: Ghost): Promise<void> {
  const { ghostSince, clusterStaleAt } = turn.memory;
  const { node, region, vmId } = ghost;
  const since = Math.max(ghostSince.get(node.uid) ?? turn.now, clusterStaleAt);
  ghostSince.set(node.uid, since);
  if (turn.now - since < turn.settings.lostAfterMs) return;
  try {
    if (!(await isVmReallyGone(turn, ghost))) return;
    await cluster.deleteNode(node, turn.acting);
  } catch (error) {
    if (!isLocalTrouble(error)) throw error;
    return;
  }
  ghostSince.delete(node.uid);
  await turn.tell({
    kind: 'did',
    subject: { region, node: node.name },
    reason: 'GhostNodeRemoved',
    message: `node ${node.name} was removed: VM ${vmId} of region ${region} is gone`,
    numbers: { vmId },
  });
}

/** The overview may lag behind; the configuration is the truth. */
async function isVmReallyGone(turn: Turn, { region, vmId }: Ghost): Promise<boolean> {
  const [host] = turn.views.get(region)?.hosts.filter(({ online }) => online) ?? [];
  if (host === undefined) return false;
  try {
    await turn.hypervisor(region).vmConfig({ vmId, host: host.name }, turn.reading);
    return false;
  } catch (error) {
    if (isVmGone(error)) return true;
    if (error instanceof PvescalerError) return false;
    throw error;
  }
}
