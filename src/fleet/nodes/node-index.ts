// SPDX-License-Identifier: Apache-2.0
// Finds Nodes by SMBIOS UUID, provider id and name. Built once per list of Nodes: matching every machine against
// every Node costs seconds at a thousand machines.
import type { MachineId } from '../../model/machine.ts';
import { readProviderId, vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';

export class NodeIndex {
  readonly #byUuid = new Map<string, ClusterNode[]>();
  /** Nodes that report no SMBIOS UUID; only these may be matched by provider id or name alone. */
  readonly #byProviderId = new Map<string, ClusterNode[]>();
  readonly #byName = new Map<string, ClusterNode[]>();

  constructor(nodes: readonly ClusterNode[]) {
    for (const node of nodes) {
      if (node.systemUuid === '') {
        add(this.#byProviderId, providerKey(node.providerId), node);
        add(this.#byName, node.name, node);
      } else add(this.#byUuid, node.systemUuid.toLowerCase(), node);
    }
  }

  /** Nodes whose SMBIOS UUID is the machine's id. */
  withMachineId(id: MachineId): readonly ClusterNode[] {
    return this.#byUuid.get(id) ?? this.#byUuid.get(swapUuidBytes(id)) ?? [];
  }

  /** Nodes without a SMBIOS UUID whose provider id names this VM or this machine. */
  unprovenOfVm(region: string, vmId: number, machine: MachineId): readonly ClusterNode[] {
    const byVm = this.#byProviderId.get(vmProviderId(region, vmId)) ?? [];
    const byMachine = this.#byProviderId.get(machine) ?? [];
    return byMachine.length === 0 ? byVm : [...byVm, ...byMachine];
  }

  /** Nodes without a SMBIOS UUID that have this name. */
  unprovenNamed(name: string): readonly ClusterNode[] {
    return this.#byName.get(name) ?? [];
  }
}

const indexes = new WeakMap<readonly ClusterNode[], NodeIndex>();

/** The index of this list of Nodes; the same one for the same list. */
export function nodeIndexOf(nodes: readonly ClusterNode[]): NodeIndex {
  const known = indexes.get(nodes);
  if (known !== undefined) return known;
  const index = new NodeIndex(nodes);
  indexes.set(nodes, index);
  return index;
}

/** Provider ids of the form `proxmox://<uuid>` are found by the machine id alone. */
function providerKey(providerId: string): string {
  const read = readProviderId(providerId);
  return read.kind === 'smbios' ? read.machine : providerId;
}

/** Firmware older than SMBIOS 2.6 reports the first three fields with swapped bytes. */
export function swapUuidBytes(uuid: string): string {
  const swap = (hex: string) => (hex.match(/../g) ?? []).toReversed().join('');
  const [first = '', second = '', third = '', ...rest] = uuid.split('-');
  return [swap(first), swap(second), swap(third), ...rest].join('-');
}

function add(map: Map<string, ClusterNode[]>, key: string, node: ClusterNode): void {
  const group = map.get(key);
  if (group === undefined) map.set(key, [node]);
  else group.push(node);
}
