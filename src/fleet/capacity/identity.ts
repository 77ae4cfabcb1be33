// SPDX-License-Identifier: Apache-2.0
// The VM id and the name of a machine that gets its place.
import type { MachineId } from '../../model/machine-id.ts';
import {
  chooseVmId,
  highestTaken,
  nameFor,
  nextFreeVmId,
  type VmIdChoice,
} from '../../placement/index.ts';
import type { RegionView } from '../../ports/hypervisor.ts';
import { knownNodes } from '../nodes/sight.ts';
import type { PoolSettings } from '../settings.ts';
import type { Turn } from '../turn.ts';
import { namesOfNodes, namesOfVms, takenInView, vmIdsOfNodes } from './taken.ts';

export function vmIdIn(turn: Turn, view: RegionView): VmIdChoice {
  const { books, now, sight } = turn;
  const { region, takenVmIds } = view;
  const range = turn.region(region).vmIds;
  const taken = takenInView(view).vmIds;
  const named = vmIdsOfNodes(knownNodes(sight), region);
  const last = books.census.lastVmId(region, range) ?? highestTaken({ takenVmIds, range });
  const vmId = nextFreeVmId(
    { range, last },
    (id) => taken.has(id) || named.has(id) || books.census.isVmIdHeld(region, id, now),
  );
  if (vmId !== undefined) return { chosen: true, vmId };
  // Only whoever says why there is none has to count what holds them.
  const nodeProviderIds = namesOfVms(knownNodes(sight), region);
  return chooseVmId({ region, range, takenVmIds, machines: books.machines, nodeProviderIds, now });
}

export function nameIn(
  { books, sight }: Turn,
  view: RegionView,
  { pool, machine }: { readonly pool: PoolSettings; readonly machine: MachineId },
): string {
  const { names } = takenInView(view);
  const ofNodes = namesOfNodes(knownNodes(sight));
  return nameFor(
    { names: pool.names, machine },
    (name) => names.has(name) || ofNodes.has(name) || books.census.isNameHeld(name, machine),
  );
}
