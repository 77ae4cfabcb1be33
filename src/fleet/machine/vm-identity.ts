// SPDX-License-Identifier: Apache-2.0
// What a machine's VM is called and made of. Derived from the record alone, so that it comes out the same after
// a crash: the same marker, the same MAC addresses, the same name of the seed.
import type { Machine } from '../../model/machine.ts';
import type { MachineId } from '../../model/machine-id.ts';
import type { Marker } from '../../model/marker.ts';
import { poolTag } from '../../model/pool-name.ts';
import type { NetworkInterface, VmHardware } from '../../ports/hypervisor.ts';
import type { InterfaceSettings, PoolSettings, RegionSettings } from '../context/settings.ts';

export function markerOf({ id, pool, requestedAt, placement }: Machine, cluster: string): Marker {
  return {
    cluster,
    pool,
    machine: id,
    vmId: placement?.vmId ?? 0,
    createdAtSeconds: Math.floor(requestedAt / 1_000),
    addresses: placement?.addresses ?? [],
  };
}

export function tagsOf(pool: string, region: RegionSettings): readonly string[] {
  return [...new Set([...region.tags, poolTag(pool)])].map((tag) => tag.toLowerCase()).sort();
}

/** Locally administered unless the pool says otherwise; the rest comes from the machine's id. */
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
  const sockets = Math.max(1, Number(pool.options['sockets'] ?? 1));
  return {
    cores: Math.max(1, Math.ceil(machine.size.cpu / sockets)),
    memoryBytes: machine.size.memoryBytes + pool.memoryOverheadBytes,
    balloonBytes: pool.balloonBytes,
    networks: pool.network.interfaces.map((card, index) => networkOf(machine.id, card, index)),
    bootFrom: pool.source.kind === 'netboot' ? 'network' : 'disk',
    options: pool.options,
  };
}

const SEED = /:iso\/pvescaler_(.+)_([0-9a-f-]{36})\.iso$/;

/** Two clusters may keep their seeds on one storage; the name says whose and which. */
export function seedFileName(cluster: string, id: MachineId): string {
  return `pvescaler_${cluster}_${id}.iso`;
}

/** The machine a seed was made for; undefined for every other file, another cluster's seeds included. */
export function seedOwner(volumeId: string, cluster: string): string | undefined {
  const [, owner, machine] = SEED.exec(volumeId) ?? [];
  return owner === cluster ? machine : undefined;
}
