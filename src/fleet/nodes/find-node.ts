// SPDX-License-Identifier: Apache-2.0
// Which Node belongs to a machine: by provider id, then SMBIOS UUID, then name. Never a Node whose SMBIOS UUID is
// another machine's, that another machine's record names, or that is older than the machine.
import type { Machine, MachineId } from '../../model/machine.ts';
import { readProviderId, vmProviderId } from '../../model/provider-id.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type { MachineIndex } from '../records/machine-index.ts';

/** Tolerated difference between our clock and the API server's, which rounds timestamps down to seconds. */
const CLOCK_SKEW_MS = 60_000;

export function findNode(
  machine: Machine,
  nodes: readonly ClusterNode[],
  machines: Pick<MachineIndex, 'byNodeUid'>,
): ClusterNode | undefined {
  const index = nodeIndexOf(nodes);
  const proven = index.withMachineId(machine.id);
  const isCandidate = (node: ClusterNode) =>
    node.createdAt + CLOCK_SKEW_MS >= machine.requestedAt &&
    machines.byNodeUid(node.uid).every(({ id }) => id === machine.id);
  const { placement } = machine;
  const named = proven.find((node) => namesVmOf(node, machine));
  if (named !== undefined || placement === undefined) return named ?? proven[0];
  const { region, vmId, name } = placement;
  return (
    index.unprovenOfVm(region, vmId, machine.id).find(isCandidate) ??
    proven[0] ??
    index.unprovenNamed(name).find(isCandidate)
  );
}

/** The Node of the machine being reconciled. Undefined also while the cluster cannot be read. */
export function findOwnNode({ context, machine }: MachineReconcile): ClusterNode | undefined {
  const { clusterReading, records } = context;
  if (clusterReading.kind !== 'fresh') return undefined;
  return findNode(machine, clusterReading.view.nodes, records.index);
}

function namesVmOf({ providerId }: ClusterNode, { id, placement }: Machine): boolean {
  if (providerId === '' || placement === undefined) return false;
  if (providerId === vmProviderId(placement.region, placement.vmId)) return true;
  const read = readProviderId(providerId);
  return read.kind === 'smbios' && read.machine === id;
}

// Finds Nodes by SMBIOS UUID, provider id and name. Built once per list of Nodes: matching every machine against
// every Node costs seconds at a thousand machines.

class NodeIndex {
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
function nodeIndexOf(nodes: readonly ClusterNode[]): NodeIndex {
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
