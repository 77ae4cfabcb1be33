// SPDX-License-Identifier: Apache-2.0
// Nodes that our machines left behind: of our provider ids, with the label of a pool, silent, and without a VM. Both
// sides must be in sight all the while; one that is ready has a VM somewhere, whatever we see.
import { VMID_LABEL } from '../../bootstrap/index.ts';
import { mayExist } from '../../model/machine.ts';
import { readProviderId } from '../../model/provider-id.ts';
import type { Cluster, ClusterNode } from '../../ports/cluster.ts';
import { PvescalerError } from '../../ports/errors.ts';
import { isMachineError } from '../context/machine-error.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { isVmGone } from '../machine/vm-lookup.ts';
import { isProven } from './find-node.ts';

interface OrphanedNode {
  readonly node: ClusterNode;
  readonly region: string;
  readonly vmId: number;
}

export async function removeOrphanedNodes(context: ReconcileContext): Promise<void> {
  const { clusterReading, state, settings } = context;
  if (clusterReading.kind !== 'fresh' || settings.cloudController) return;
  const suspects = orphanedNodesIn(context, clusterReading.view.nodes);
  const uids = new Set(suspects.map(({ node }) => node.uid));
  for (const uid of state.orphanedSince.keys()) if (!uids.has(uid)) state.orphanedSince.delete(uid);
  for (const ghost of suspects) await consider(context, clusterReading.cluster, ghost);
}

/** What looks like a ghost from the two views alone. */
export function orphanedNodesIn(
  context: ReconcileContext,
  nodes: readonly ClusterNode[],
): readonly OrphanedNode[] {
  return nodes.flatMap((node) => {
    const id = readProviderId(node.providerId);
    if (id.kind !== 'vm' || node.ready || node.isTerminating || !isOfAPool(context, node))
      return [];
    if (node.labels[VMID_LABEL] !== String(id.vmId)) return [];
    const view = context.views.get(id.region);
    if (view === undefined || view.takenVmIds.includes(id.vmId)) return [];
    return isClaimed(context, node, id) ? [] : [{ node, region: id.region, vmId: id.vmId }];
  });
}

function isOfAPool(context: ReconcileContext, { labels }: ClusterNode): boolean {
  const keys = Object.values(context.settings.pools).map(({ groupLabel }) => groupLabel);
  return keys.some((key) => (labels[key] ?? '') !== '');
}

function isClaimed(
  { records }: ReconcileContext,
  node: ClusterNode,
  { region, vmId }: { readonly region: string; readonly vmId: number },
): boolean {
  return records.machines.some(
    ({ id, phase, placement, nodeUid }) =>
      mayExist(phase) &&
      (nodeUid === node.uid ||
        isProven(node, id) ||
        (placement?.region === region && placement.vmId === vmId)),
  );
}

async function consider(
  context: ReconcileContext,
  cluster: Cluster,
  ghost: OrphanedNode,
): Promise<void> {
  const { orphanedSince, clusterStaleAt } = context.state;
  const { node, region, vmId } = ghost;
  const since = Math.max(orphanedSince.get(node.uid) ?? context.now, clusterStaleAt);
  orphanedSince.set(node.uid, since);
  if (context.now - since < context.settings.lostAfterMs) return;
  try {
    if (!(await isVmReallyGone(context, ghost))) return;
    await cluster.deleteNode(node, context.writeOptions);
  } catch (error) {
    if (!isMachineError(error)) throw error;
    return;
  }
  orphanedSince.delete(node.uid);
  await context.record({
    kind: 'did',
    subject: { region, node: node.name },
    reason: 'GhostNodeRemoved',
    message: `node ${node.name} was removed: VM ${vmId} of region ${region} is gone`,
    numbers: { vmId },
  });
}

/** The overview may lag behind; the configuration is the truth. */
async function isVmReallyGone(
  context: ReconcileContext,
  { region, vmId }: OrphanedNode,
): Promise<boolean> {
  const [host] = context.views.get(region)?.hosts.filter(({ online }) => online) ?? [];
  if (host === undefined) return false;
  try {
    await context.hypervisor(region).vmConfig({ vmId, host: host.name }, context.readOptions);
    return false;
  } catch (error) {
    if (isVmGone(error)) return true;
    if (error instanceof PvescalerError) return false;
    throw error;
  }
}
