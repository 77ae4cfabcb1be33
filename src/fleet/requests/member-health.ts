// SPDX-License-Identifier: Apache-2.0
import type { Machine } from '../../model/machine.ts';
import type { MemberHealth } from '../../pools/index.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import { PvescalerError } from '../../ports/errors.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import type { FleetOptions } from '../context/options.ts';
import { recentRegionViews } from '../context/region-views.ts';
import { vmsById } from '../context/taken.ts';

/** Reads what this process can read now. What it cannot read is unknown. */
export type ReadHealth = (signal: AbortSignal | undefined) => Promise<HealthOf>;
export type HealthOf = (machine: Machine | undefined) => MemberHealth;

export async function readMemberHealth(
  options: Pick<FleetOptions, 'hypervisors' | 'cluster' | 'clock'>,
  signal: AbortSignal | undefined,
): Promise<HealthOf> {
  const [{ views }, nodes] = await Promise.all([
    recentRegionViews(options, { signal }, new Map()),
    readNodes(options, signal),
  ]);
  return (machine) => ({
    isVmMissing: machine === undefined ? undefined : isVmMissing(machine, views),
    isHostDown: machine === undefined ? undefined : isHostDown(machine, views),
    isNodeReady:
      machine?.nodeName === undefined || nodes === undefined
        ? undefined
        : nodes.get(machine.nodeName)?.ready === true,
  });
}

/** Only of ready machines: a VM that was just created may be newer than the view. */
export function isVmMissing(
  { phase, placement }: Machine,
  views: ReadonlyMap<string, RegionView>,
): boolean | undefined {
  const view = placement === undefined ? undefined : views.get(placement.region);
  if (phase !== 'ready' || placement === undefined || view === undefined) return undefined;
  return !vmsById(view).has(placement.vmId);
}

/** A host that is not in the view was removed from its cluster. */
function isHostDown(
  { placement }: Machine,
  views: ReadonlyMap<string, RegionView>,
): boolean | undefined {
  const view = placement === undefined ? undefined : views.get(placement.region);
  if (placement === undefined || view === undefined) return undefined;
  // The record names an earlier host until the driver has read a VM that was moved.
  const host = vmsById(view).get(placement.vmId)?.host ?? placement.host;
  return view.hosts.find(({ name }) => name === host)?.online !== true;
}

async function readNodes(
  { cluster }: Pick<FleetOptions, 'cluster'>,
  signal: AbortSignal | undefined,
): Promise<ReadonlyMap<string, ClusterNode> | undefined> {
  if (cluster === undefined) return undefined;
  try {
    const { nodes } = await cluster.refresh({ signal });
    return new Map(nodes.map((node) => [node.name, node]));
  } catch (error) {
    if (!(error instanceof PvescalerError) || error.code === 'CANCELLED') throw error;
    return undefined;
  }
}
