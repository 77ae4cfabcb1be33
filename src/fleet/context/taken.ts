// SPDX-License-Identifier: Apache-2.0
// VM ids and names in a view or of Nodes, indexed once per view and once per list of Nodes.
import { VMID_LABEL } from '../../bootstrap/index.ts';
import { readProviderId } from '../../model/provider-id.ts';
import { vmIdsNamedByNodes } from '../../placement/index.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import type { RegionView, VmSummary } from '../../ports/hypervisor.ts';
import type { DriverState } from './driver-state.ts';

interface TakenInView {
  readonly vmIds: ReadonlySet<number>;
  /** Lower case. */
  readonly names: ReadonlySet<string>;
}

const inViews = new WeakMap<RegionView, TakenInView>();

export function takenInView(view: RegionView): TakenInView {
  const known = inViews.get(view);
  if (known !== undefined) return known;
  const names = view.vms.flatMap(({ name }) => name?.toLowerCase() ?? []);
  const taken = { vmIds: new Set(view.takenVmIds), names: new Set(names) };
  inViews.set(view, taken);
  return taken;
}

/** How long an id that Proxmox refused is not tried again, although no VM with it is visible. */
const REFUSED_ID_MS = 60 * 60_000;

/** VM ids that belong to VMs or containers which the credentials may not see. */
export function refusedVmIds(
  { state, clock }: { readonly state: DriverState; readonly clock: Pick<Clock, 'monotonic'> },
  region: string,
): ReadonlySet<number> {
  const refused = state.refusedVmIds.get(region) ?? new Map<number, number>();
  for (const [vmId, at] of refused) {
    if (clock.monotonic() - at > REFUSED_ID_MS) refused.delete(vmId);
  }
  return new Set(refused.keys());
}

const byIds = new WeakMap<RegionView, ReadonlyMap<number, VmSummary>>();

export function vmsById(view: RegionView): ReadonlyMap<number, VmSummary> {
  const known = byIds.get(view);
  if (known !== undefined) return known;
  const vms = new Map<number, VmSummary>();
  for (const vm of view.vms) vms.set(vm.vmId, vm);
  byIds.set(view, vms);
  return vms;
}

interface TakenByNodes {
  readonly names: ReadonlySet<string>;
  readonly vmIds: Map<string, ReadonlySet<number>>;
}

const byNodes = new WeakMap<readonly ClusterNode[], TakenByNodes>();

function takenByNodes(nodes: readonly ClusterNode[]): TakenByNodes {
  const known = byNodes.get(nodes);
  if (known !== undefined) return known;
  const taken = { names: new Set(nodes.map(({ name }) => name.toLowerCase())), vmIds: new Map() };
  byNodes.set(nodes, taken);
  return taken;
}

/** Lower case. */
export function namesOfNodes(nodes: readonly ClusterNode[]): ReadonlySet<string> {
  return takenByNodes(nodes).names;
}

export function vmIdsOfNodes(nodes: readonly ClusterNode[], region: string): ReadonlySet<number> {
  const { vmIds } = takenByNodes(nodes);
  const known = vmIds.get(region);
  if (known !== undefined) return known;
  const nodeProviderIds = providerIdsOf(nodes, region);
  const ids = new Set(vmIdsNamedByNodes({ nodeProviderIds, region }));
  vmIds.set(region, ids);
  return ids;
}

export function providerIdsOf(nodes: readonly ClusterNode[], region: string): readonly string[] {
  return nodes.flatMap((node) => providerIdOf(node, region));
}

/** From its provider id, or from our label where the provider id has another form (`k3s://…`). */
function providerIdOf({ providerId, labels }: ClusterNode, region: string): readonly string[] {
  const vmId = labels[VMID_LABEL];
  if (vmId === undefined || readProviderId(providerId).kind === 'vm') return [providerId];
  return [`proxmox://${region}/${vmId}`];
}
