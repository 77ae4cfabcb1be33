// SPDX-License-Identifier: Apache-2.0
// Identity and specification of a machine's VM, derived from the record alone: after a crash the marker, the MAC
// addresses and the seed's name are the same.

import type { Machine, MachineId } from '../../model/machine.ts';
import type { Marker } from '../../model/marker.ts';
import { groupTag } from '../../model/names.ts';
import { templateTags } from '../../model/role.ts';
import { SELFTEST_FIELD } from '../../model/selftest.ts';
import type { Hypervisor, NetworkInterface, VmHardware, VmSpec } from '../../ports/hypervisor.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import type {
  FleetSettings,
  InterfaceSettings,
  PoolSettings,
  RegionSettings,
} from '../context/settings.ts';

export function markerOf(machine: Machine, cluster: string): Marker {
  const { id, pool, requestedAt, placement, vm } = machine;
  return {
    cluster,
    ...(placement !== undefined && { region: placement.region }),
    pool,
    machine: id,
    vmId: placement?.vmId ?? 0,
    createdAtSeconds: Math.floor(requestedAt / 1_000),
    ...(machine.isSelftest === true && { unknown: [SELFTEST_FIELD] }),
    addresses: placement?.addresses ?? [],
    ...(vm?.template !== undefined && { template: vm.template }),
  };
}

type ClusterName = Pick<FleetSettings, 'clusterName'>;

/** For people and filters in Proxmox; ownership is proven by the marker alone. */
export function tagsOf(
  { pool, vm }: Pick<Machine, 'pool' | 'vm'>,
  region: RegionSettings,
  { clusterName }: ClusterName,
): readonly string[] {
  const tags = [
    ...region.tags,
    groupTag(pool),
    ...(clusterName === undefined ? [] : [clusterName]),
    ...(vm?.template === undefined ? [] : templateTags(vm.template)),
  ];
  return [...new Set(tags.map((tag) => tag.toLowerCase()))].sort();
}

/** Locally administered unless the pool has a prefix; the rest is derived from the machine's id. */
export function macOf(id: MachineId, index: number, prefix = '02'): string {
  const head = prefix.split(':').map((octet) => octet.toUpperCase());
  const digits = id.replaceAll('-', '').toUpperCase();
  const octets = Array.from({ length: 6 }, (_, at) => digits.slice(at * 2, at * 2 + 2));
  const tail = octets.slice(head.length);
  const last = Number.parseInt(tail.at(-1) ?? '0', 16);
  const varied = ((last + index) % 256).toString(16).toUpperCase().padStart(2, '0');
  return [...head, ...tail.slice(0, -1), varied].slice(0, 6).join(':');
}

export function networkOf(id: MachineId, card: InterfaceSettings, index: number): NetworkInterface {
  return {
    model: card.model,
    bridge: card.bridge,
    mac: macOf(id, index, card.macPrefix),
    ...(card.vlan !== undefined && { vlan: card.vlan }),
    ...(card.mtu !== undefined && { mtu: card.mtu }),
    ...(card.queues !== undefined && { queues: card.queues }),
    ...(card.firewall && { firewall: true }),
  };
}

export function hardwareOf(machine: Machine, pool: PoolSettings): VmHardware {
  return {
    cpus: machine.size.cpu,
    memoryBytes: machine.size.memoryBytes + pool.memoryOverheadBytes,
    balloonBytes: pool.balloonBytes,
    networks: pool.network.interfaces.map((card, index) => networkOf(machine.id, card, index)),
    bootFrom: pool.source.kind === 'netboot' ? 'network' : 'disk',
    options: pool.vmOptions,
  };
}

/** What a clone is changed to. */
export function specOf(
  { machine, region, context }: Pick<MachineReconcile, 'machine' | 'region' | 'context'>,
  pool: PoolSettings,
): VmSpec {
  return {
    tags: tagsOf(machine, region, context.settings),
    smbiosUuid: machine.id,
    hardware: hardwareOf(machine, pool),
    disk: pool.disk,
    hasSeed: pool.seed !== undefined,
  };
}

const SEED_NAME = /^pvescaler_(.+)_([0-9a-f-]{36})\.iso$/;

/** Contains cluster and machine, because two clusters may keep their seeds on one storage. */
export function seedFileName(cluster: string, id: MachineId): string {
  return `pvescaler_${cluster}_${id}.iso`;
}

/** The volume of a machine's seed, whether it exists or not. */
export function seedVolumeOf(reconcile: {
  readonly id: MachineId;
  readonly hypervisor: Pick<Hypervisor, 'volumeId'>;
  readonly region: RegionSettings;
  readonly context: { readonly settings: { readonly cluster: string } };
}): string {
  const { id, hypervisor, region, context } = reconcile;
  const name = seedFileName(context.settings.cluster, id);
  return hypervisor.volumeId({ storage: region.storage.seeds, content: 'iso', name });
}

/** The machine of a seed; undefined for other files, including seeds of other clusters. */
export function seedOwner(fileName: string, cluster: string): string | undefined {
  const [, owner, machine] = SEED_NAME.exec(fileName) ?? [];
  return owner === cluster ? machine : undefined;
}
