// SPDX-License-Identifier: Apache-2.0
// Chooses the VM id and the name of a machine that is being placed.
import type { MachineId } from '../../model/machine.ts';
import {
  chooseVmId,
  highestTakenVmId,
  nextFreeVmId,
  pickFreeName,
  type VmIdChoice,
} from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { knownNodes } from '../context/cluster-reading.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { namesOfNodes, namesOfVms, takenInView, vmIdsOfNodes } from '../context/taken.ts';

export function vmIdIn(context: ReconcileContext, view: RegionView): VmIdChoice {
  const { records, now, clusterReading } = context;
  const { region, takenVmIds } = view;
  const range = context.region(region).vmIds;
  const taken = takenInView(view).vmIds;
  const named = vmIdsOfNodes(knownNodes(clusterReading), region);
  const last = records.usage.lastVmId(region, range) ?? highestTakenVmId({ takenVmIds, range });
  const vmId = nextFreeVmId(
    { range, last },
    (id) => taken.has(id) || named.has(id) || records.index.isVmIdHeld(region, id, now),
  );
  if (vmId !== undefined) return { chosen: true, vmId };
  // Counting what holds the ids is only needed for the reason of the refusal.
  const nodeProviderIds = namesOfVms(knownNodes(clusterReading), region);
  return chooseVmId({
    region,
    range,
    takenVmIds,
    machines: records.machines,
    nodeProviderIds,
    now,
  });
}

export function nameIn(
  { records, clusterReading }: ReconcileContext,
  view: RegionView,
  { pool, machine }: { readonly pool: PoolSettings; readonly machine: MachineId },
): string {
  const { names } = takenInView(view);
  const ofNodes = namesOfNodes(knownNodes(clusterReading));
  return pickFreeName(
    { names: pool.names, machine },
    (name) => names.has(name) || ofNodes.has(name) || records.index.isNameHeld(name, machine),
  );
}
