// SPDX-License-Identifier: Apache-2.0
// Which machine the autoscaler speaks of. It knows real Nodes, and it invents nodes for instances without one: name
// and provider id are the instance's id then, and there is not a single label.
import type { FleetView } from '../../fleet/index.ts';
import type { CreateIntent } from '../../model/intent.ts';
import { type Machine, mayExist } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import { type ProviderId, readProviderId } from '../../model/provider-id.ts';

export interface AskedNode {
  readonly providerID: string;
  readonly name: string;
}

export type Resolved =
  | { readonly kind: 'machine'; readonly id: MachineId; readonly machine: Machine }
  /** Asked for, without a record yet. */
  | { readonly kind: 'coming'; readonly id: MachineId; readonly intent: CreateIntent }
  /** In the form of ours, and no machine has it any more. */
  | { readonly kind: 'past'; readonly region?: string; readonly vmId?: number }
  | { readonly kind: 'foreign' };

const FOREIGN: Resolved = { kind: 'foreign' };

export function resolveNode(node: AskedNode, view: FleetView): Resolved {
  const byId = node.providerID === '' ? FOREIGN : byProviderId(node.providerID, view);
  if (byId.kind === 'machine' || byId.kind === 'coming') return byId;
  return byName(node, view) ?? byId;
}

/** A Node whose provider id says something else than its machine's known one is not that machine's. */
function byName({ name, providerID }: AskedNode, view: FleetView): Resolved | undefined {
  if (name === '') return undefined;
  const machine = withNode(view.index.byName(name));
  if (machine === undefined) return undefined;
  const isOther =
    providerID !== '' && machine.providerId !== undefined && machine.providerId !== providerID;
  if (isOther || isOtherVm(machine, providerID)) return undefined;
  return found(machine);
}

function isOtherVm({ placement }: Machine, providerID: string): boolean {
  const id = readProviderId(providerID);
  if (id.kind !== 'vm' || placement === undefined) return false;
  return id.region !== placement.region || id.vmId !== placement.vmId;
}

/** Ids come round: whoever has it now goes before those who had it. */
function byProviderId(providerId: string, view: FleetView): Resolved {
  const known = view.index.byProviderId(providerId);
  if (known !== undefined && mayExist(known.phase)) return found(known);
  const read = byForm(readProviderId(providerId), view);
  if (known === undefined || read.kind === 'machine' || read.kind === 'coming') return read;
  if (known.phase === 'gone') return found(known);
  return read.kind === 'past' ? read : { kind: 'past' };
}

function byForm(id: ProviderId, view: FleetView): Resolved {
  const { index } = view;
  switch (id.kind) {
    case 'placeholder':
      return byMachineId(id.machine, view) ?? { kind: 'past' };
    case 'smbios':
      return byMachineId(id.machine, view) ?? FOREIGN;
    case 'vm': {
      const machine = withNode(index.byVm(id.region, id.vmId));
      return machine === undefined
        ? { kind: 'past', region: id.region, vmId: id.vmId }
        : found(machine);
    }
    case 'node-name': {
      const machine = withNode(index.byName(id.nodeName));
      return machine === undefined || machine.providerId !== undefined ? FOREIGN : found(machine);
    }
    default:
      return FOREIGN;
  }
}

/**
 * Nothing is left of one that failed, and nothing is made yet of one that waits: a Node at the VM id or with the name
 * that its record still has is somebody else's.
 */
function withNode(machine: Machine | undefined): Machine | undefined {
  if (machine === undefined) return undefined;
  return mayExist(machine.phase) || machine.phase === 'gone' ? machine : undefined;
}

function found(machine: Machine): Resolved {
  return { kind: 'machine', id: machine.id, machine };
}

function byMachineId(id: MachineId, { index, machines }: FleetView): Resolved | undefined {
  const machine = machines.get(id);
  if (machine !== undefined) return { kind: 'machine', id, machine };
  const intent = index.requested(id);
  return intent === undefined ? undefined : { kind: 'coming', id, intent };
}
