// SPDX-License-Identifier: Apache-2.0
// Nodes that our machines left behind: with our provider id and a pool's label, not Ready, and without a VM. Both
// Proxmox and Kubernetes must be readable for the whole waiting time; a Node that is Ready has a VM somewhere.
import { VMID_LABEL } from '../../bootstrap/index.ts';
import { type Machine, mayHaveVm, parseMachineId } from '../../model/machine.ts';

import { readProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import { isVmGone } from '../context/machine-error.ts';
import { DONE } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { takenInView } from '../context/taken.ts';
import { swapUuidBytes } from './find-node.ts';

interface OrphanedNode {
  readonly node: ClusterNode;
  readonly region: string;
  readonly vmId: number;
}

export function removeOrphanedNodes(context: ReconcileContext, jobs: HostJobs): void {
  const { clusterReading, state, settings } = context;
  if (clusterReading.kind !== 'fresh' || settings.cloudController) return;
  const orphans = orphanedNodesIn(context, clusterReading.view.nodes);
  const uids = new Set(orphans.map(({ node }) => node.uid));
  for (const uid of state.orphanedSince.keys()) {
    if (!uids.has(uid)) state.orphanedSince.delete(uid);
  }
  for (const orphan of orphans) {
    if (isDue(context, orphan)) startRemoval(jobs, orphan);
  }
}

/** Nodes without a VM and a machine, according to the two views alone. */
export function orphanedNodesIn(
  context: ReconcileContext,
  nodes: readonly ClusterNode[],
): readonly OrphanedNode[] {
  return nodes.flatMap((node) => {
    if (node.ready || node.isTerminating) return [];
    const id = readProviderId(node.providerId);
    if (id.kind !== 'vm' || !hasPoolLabel(context, node)) return [];
    if (node.labels[VMID_LABEL] !== String(id.vmId)) return [];
    const view = context.views.get(id.region);
    if (view === undefined || takenInView(view).vmIds.has(id.vmId)) return [];
    return hasMachine(context, node, id) ? [] : [{ node, region: id.region, vmId: id.vmId }];
  });
}

function hasPoolLabel(context: ReconcileContext, { labels }: ClusterNode): boolean {
  const keys = Object.values(context.settings.pools).map(({ groupLabel }) => groupLabel);
  return keys.some((key) => (labels[key] ?? '') !== '');
}

function hasMachine(
  { records }: ReconcileContext,
  node: ClusterNode,
  { region, vmId }: { readonly region: string; readonly vmId: number },
): boolean {
  const { systemUuid } = node;
  const byUuid = [systemUuid, swapUuidBytes(systemUuid)].flatMap((text): readonly Machine[] => {
    const id = parseMachineId(text);
    const machine = id.ok ? records.find(id.value) : undefined;
    return machine === undefined ? [] : [machine];
  });
  const machines = [...records.index.byNodeUid(node.uid), ...byUuid];
  return records.index.isVmClaimed(region, vmId) || machines.some(({ phase }) => mayHaveVm(phase));
}

function isDue(context: ReconcileContext, { node }: OrphanedNode): boolean {
  const { orphanedSince, clusterStaleAt } = context.state;
  const now = context.clock.monotonic();
  const since = Math.max(orphanedSince.get(node.uid) ?? now, clusterStaleAt);
  orphanedSince.set(node.uid, since);
  return now - since >= context.settings.lostAfterMs;
}

function startRemoval(jobs: HostJobs, orphan: OrphanedNode): void {
  const { node, region } = orphan;
  jobs.start(`Node ${node.name} (uid ${node.uid})`, { region, host: '' }, async (context) => {
    await removeOrphanedNode(context, orphan);
    return DONE;
  });
}

async function removeOrphanedNode(context: ReconcileContext, orphan: OrphanedNode): Promise<void> {
  const { node, region, vmId } = orphan;
  // Something may have changed since the pass that started this.
  if (context.clusterReading.kind !== 'fresh') return;
  const { cluster, view } = context.clusterReading;
  const isStillOrphaned = orphanedNodesIn(context, view.nodes).some(
    (one) => one.node.uid === node.uid,
  );
  if (!isStillOrphaned || !(await isVmConfirmedGone(context, orphan))) return;
  await cluster.deleteNode(node, context.writeOptions());
  context.state.orphanedSince.delete(node.uid);
  await context.record({
    kind: 'did',
    subject: { region, node: node.name },
    reason: 'OrphanedNodeRemoved',
    message: `removed node ${node.name}: VM ${vmId} of region ${region} is gone`,
    numbers: { vmId },
  });
}

/** The view may lag behind; only the VM's configuration is authoritative. */
async function isVmConfirmedGone(
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
