// SPDX-License-Identifier: Apache-2.0
// What must hold after every step, judged from the simulator's truth, the plan and the durable records; nothing
// of the engine is asked.
import { CLUSTER } from '../../src/fleet/testing/settings.ts';
import type { Machine } from '../../src/model/machine.ts';
import { type Marker, readMarker } from '../../src/model/marker.ts';
import type { Inspection } from '../../src/sim/proxmox/index.ts';
import type { Known } from './known.ts';

export type Vm = Inspection['vms'][number];

/** A VM of ours: its marker names our cluster and the VM's own id. */
export function ownMarker({ id, config }: Vm): Marker | undefined {
  const reading = readMarker(config['description']);
  if (reading.kind !== 'marked') return undefined;
  const { marker } = reading;
  return marker.cluster === CLUSTER && marker.vmId === id ? marker : undefined;
}

export function ownMachines(world: Known, vms: readonly Vm[]): readonly string[] {
  return vms
    .filter(({ id }) => !world.strangers.has(id))
    .flatMap((vm) => ownMarker(vm)?.machine ?? []);
}

export async function check(world: Known): Promise<readonly Machine[]> {
  const inspection = world.region.sim.inspect();
  const machines = await world.machines();
  const present = ownMachines(world, inspection.vms);
  noDoubles(world, present);
  strangersUntouched(world, inspection);
  nothingForgotten(world, machines, present);
  nothingTakenUnasked(world, machines, present);
  world.lastSeen = new Set(present);
  return machines;
}

function noDoubles(world: Known, present: readonly string[]): void {
  const doubles = present.filter((id, at) => present.indexOf(id) !== at);
  for (const id of doubles) world.violated(`machine ${id} has two VMs`);
}

export function likeness(inspection: Inspection, vmId: number): string {
  const vm = inspection.vms.find(({ id }) => id === vmId);
  const disks = inspection.volumes.filter((volume) => volume.vmId === vmId);
  return JSON.stringify([vm?.host, vm?.config, disks.map(({ id, size }) => [id, size])]);
}

function strangersUntouched(world: Known, inspection: Inspection): void {
  for (const [vmId, before] of world.strangers) {
    if (likeness(inspection, vmId) === before) continue;
    world.violated(`VM ${vmId}, which is not ours, was changed`);
    world.strangers.set(vmId, likeness(inspection, vmId));
  }
}

/** A record may end only when its VM is no more. */
function nothingForgotten(
  world: Known,
  machines: readonly Machine[],
  present: readonly string[],
): void {
  for (const { id, phase } of machines) {
    const isOver = phase === 'gone' || phase === 'failed';
    if (!isOver || world.over.has(id)) continue;
    world.over.add(id);
    if (present.includes(id) && world.lastSeen.has(id)) {
      world.violated(`machine ${id} is ${phase}, and its VM is there`);
    }
  }
}

/** A machine that has been ready goes only if somebody asked, or took it away himself. */
function nothingTakenUnasked(
  world: Known,
  machines: readonly Machine[],
  present: readonly string[],
): void {
  for (const { id, phase } of machines) if (phase === 'ready') world.readyOnce.add(id);
  for (const id of world.readyOnce) {
    if (present.includes(id)) continue;
    world.readyOnce.delete(id);
    if (!world.dismissed.has(id)) world.violated(`machine ${id} was taken away, and nobody asked`);
  }
}

/** Everything is as it was asked for: so many machines, all ready, all with their VM, and nothing else of ours. */
export async function checkReached(world: Known, size: number): Promise<void> {
  const { vms, volumes } = world.region.sim.inspect();
  const present = ownMachines(world, vms).toSorted();
  const ready = (await world.machines())
    .filter(({ phase }) => phase === 'ready')
    .map(({ id }) => String(id))
    .sort();
  if (present.length !== size)
    world.violated(`${size} VMs are wanted, ${present.length} are there`);
  if (present.join() !== ready.join()) world.violated('VMs and ready machines are not the same');
  const isos = volumes.filter(({ content }) => content === 'iso');
  if (isos.length > 0) world.violated(`${isos.length} seeds are left: ${isos[0]?.id ?? ''}`);
  const known = new Set(vms.map(({ id }) => id));
  const disks = volumes.filter(({ vmId }) => vmId !== undefined && !known.has(vmId));
  if (disks.length > 0) world.violated(`${disks.length} disks are left: ${disks[0]?.id ?? ''}`);
  const addresses = (await world.store.addresses.list()).filter(
    ({ value }) => value.releasedAt === undefined,
  );
  if (addresses.length !== size) {
    world.violated(`${addresses.length} addresses are held by ${size} machines`);
  }
}
