// SPDX-License-Identifier: Apache-2.0
// Finds the machine of a node that the autoscaler names. For an instance without a Node the autoscaler sends a
// placeholder node: its name and provider id are the instance's id, and it has no labels.
import type { FleetView } from '../../fleet/index.ts';
import type { CreateIntent } from '../../model/intent.ts';
import { type Machine, type MachineId, mayHaveVm } from '../../model/machine.ts';

import { type ProviderId, readProviderId } from '../../model/provider-id.ts';

export interface NodeReference {
  readonly providerID: string;
  readonly name: string;
}

export type ResolvedNode =
  | { readonly kind: 'machine'; readonly id: MachineId; readonly machine: Machine }
  /** Requested, without a record yet. */
  | { readonly kind: 'requested'; readonly id: MachineId; readonly intent: CreateIntent }
  /** An id in our format that no machine has any more. */
  | { readonly kind: 'stale'; readonly region?: string; readonly vmId?: number }
  | { readonly kind: 'foreign' };

const FOREIGN: ResolvedNode = { kind: 'foreign' };

export function resolveNode(node: NodeReference, view: FleetView): ResolvedNode {
  const byId = node.providerID === '' ? FOREIGN : resolveByProviderId(node.providerID, view);
  if (byId.kind === 'machine' || byId.kind === 'requested') return byId;
  return resolveByName(node, view) ?? byId;
}

/** A Node whose provider id differs from the machine's recorded one belongs to another machine. */
function resolveByName(
  { name, providerID }: NodeReference,
  view: FleetView,
): ResolvedNode | undefined {
  if (name === '') return undefined;
  const machine = ifMayHaveNode(view.index.byName(name));
  if (machine === undefined) return undefined;
  const hasOtherId =
    providerID !== '' && machine.providerId !== undefined && machine.providerId !== providerID;
  if (hasOtherId || namesAnotherVm(machine, providerID)) return undefined;
  return resolvedTo(machine);
}

function namesAnotherVm({ placement }: Machine, providerID: string): boolean {
  const id = readProviderId(providerID);
  if (id.kind !== 'vm' || placement === undefined) return false;
  return id.region !== placement.region || id.vmId !== placement.vmId;
}

/** VM ids are reused: the machine that has the id now takes precedence over earlier ones. */
function resolveByProviderId(providerId: string, view: FleetView): ResolvedNode {
  const known = view.index.byProviderId(providerId);
  if (known !== undefined && mayHaveVm(known.phase)) return resolvedTo(known);
  const current = resolveByFormat(readProviderId(providerId), view);
  if (known === undefined || current.kind === 'machine' || current.kind === 'requested')
    return current;
  if (known.phase === 'gone') return resolvedTo(known);
  return current.kind === 'stale' ? current : { kind: 'stale' };
}

function resolveByFormat(id: ProviderId, view: FleetView): ResolvedNode {
  const { index } = view;
  switch (id.kind) {
    case 'placeholder':
      return resolveByMachineId(id.machine, view) ?? { kind: 'stale' };
    case 'smbios':
      return resolveByMachineId(id.machine, view) ?? FOREIGN;
    case 'vm': {
      const machine = ifMayHaveNode(index.byVm(id.region, id.vmId));
      return machine === undefined
        ? { kind: 'stale', region: id.region, vmId: id.vmId }
        : resolvedTo(machine);
    }
    case 'node-name': {
      const machine = ifMayHaveNode(index.byName(id.nodeName));
      return machine === undefined || machine.providerId !== undefined
        ? FOREIGN
        : resolvedTo(machine);
    }
    case 'foreign':
      return FOREIGN;
  }
}

/**
 * A failed machine has no VM any more and a waiting one has none yet: a Node with the VM id or name in such a record
 * belongs to another VM.
 */
function ifMayHaveNode(machine: Machine | undefined): Machine | undefined {
  if (machine === undefined) return undefined;
  return mayHaveVm(machine.phase) || machine.phase === 'gone' ? machine : undefined;
}

/** A selftest machine is in no node group: the autoscaler leaves its Node alone. */
function resolvedTo(machine: Machine): ResolvedNode {
  return machine.isSelftest === true ? FOREIGN : { kind: 'machine', id: machine.id, machine };
}

function resolveByMachineId(
  id: MachineId,
  { index, machines }: FleetView,
): ResolvedNode | undefined {
  const machine = machines.get(id);
  if (machine !== undefined) return resolvedTo(machine);
  const intent = index.requested(id);
  return intent === undefined ? undefined : { kind: 'requested', id, intent };
}
