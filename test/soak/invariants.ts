// SPDX-License-Identifier: Apache-2.0
// Invariants that hold after every step. They are checked against the simulator's state, the plan and the durable
// records only; the engine under test is not consulted.
import { CLUSTER } from '../../src/fleet/testing/settings.ts';
import type { Machine } from '../../src/model/machine.ts';
import { type Marker, readMarker } from '../../src/model/marker.ts';
import type { Inspection } from '../../src/sim/proxmox/index.ts';
import type { SoakState } from './soak-state.ts';

export type Vm = Inspection['vms'][number];

/** The marker of a VM that names our cluster and the VM's own id; undefined for every other VM. */
export function readOwnMarker({ id, config }: Vm): Marker | undefined {
  const reading = readMarker(config['description']);
  if (reading.kind !== 'marked') return undefined;
  const { marker } = reading;
  return marker.cluster === CLUSTER && marker.vmId === id ? marker : undefined;
}

export function listOwnedMachines(state: SoakState, vms: readonly Vm[]): readonly string[] {
  return vms
    .filter(({ id }) => !state.unmanagedVms.has(id))
    .flatMap((vm) => readOwnMarker(vm)?.machine ?? []);
}

export async function checkInvariants(state: SoakState): Promise<readonly Machine[]> {
  const inspection = state.region.sim.inspect();
  const machines = await state.machines();
  const present = listOwnedMachines(state, inspection.vms);
  checkNoDuplicateVms(state, present);
  checkUnmanagedVmsUnchanged(state, inspection);
  checkEndedMachinesHaveNoVm(state, machines, present);
  checkDeletionsWereRequested(state, machines, present);
  state.presentBefore = new Set(present);
  return machines;
}

function checkNoDuplicateVms(state: SoakState, present: readonly string[]): void {
  const doubles = present.filter((id, at) => present.indexOf(id) !== at);
  for (const id of doubles) state.reportViolation(`machine ${id} has two VMs`);
}

export function snapshotVm(inspection: Inspection, vmId: number): string {
  const vm = inspection.vms.find(({ id }) => id === vmId);
  const disks = inspection.volumes.filter((volume) => volume.vmId === vmId);
  return JSON.stringify([vm?.host, vm?.config, disks.map(({ id, size }) => [id, size])]);
}

function checkUnmanagedVmsUnchanged(state: SoakState, inspection: Inspection): void {
  for (const [vmId, before] of state.unmanagedVms) {
    if (snapshotVm(inspection, vmId) === before) continue;
    state.reportViolation(`unmanaged VM ${vmId} was changed`);
    state.unmanagedVms.set(vmId, snapshotVm(inspection, vmId));
  }
}

/** A record may end only after its VM is gone. */
function checkEndedMachinesHaveNoVm(
  state: SoakState,
  machines: readonly Machine[],
  present: readonly string[],
): void {
  for (const { id, phase } of machines) {
    const isOver = phase === 'gone' || phase === 'failed';
    if (!isOver || state.ended.has(id)) continue;
    state.ended.add(id);
    if (present.includes(id) && state.presentBefore.has(id)) {
      state.reportViolation(`machine ${id} is ${phase}, but its VM still exists`);
    }
  }
}

/** A machine that was ready disappears only after a deletion request or an external deletion. */
function checkDeletionsWereRequested(
  state: SoakState,
  machines: readonly Machine[],
  present: readonly string[],
): void {
  for (const { id, phase } of machines) if (phase === 'ready') state.everReady.add(id);
  for (const id of state.everReady) {
    if (present.includes(id)) continue;
    state.everReady.delete(id);
    if (!state.deletionRequested.has(id))
      state.reportViolation(`machine ${id} was deleted without a request`);
  }
}

/** The site matches the request exactly: `size` ready machines with their VMs, and no leftovers. */
export async function checkConverged(state: SoakState, size: number): Promise<void> {
  const { vms, volumes } = state.region.sim.inspect();
  const present = listOwnedMachines(state, vms).toSorted();
  const ready = (await state.machines())
    .filter(({ phase }) => phase === 'ready')
    .map(({ id }) => String(id))
    .sort();
  if (present.length !== size)
    state.reportViolation(`${present.length} VMs exist, ${size} were requested`);
  if (present.join() !== ready.join())
    state.reportViolation('the VMs and the ready machines differ');
  const isos = volumes.filter(({ content }) => content === 'iso');
  if (isos.length > 0)
    state.reportViolation(`${isos.length} seeds were left behind, first: ${isos[0]?.id ?? ''}`);
  const known = new Set(vms.map(({ id }) => id));
  const disks = volumes.filter(({ vmId }) => vmId !== undefined && !known.has(vmId));
  if (disks.length > 0)
    state.reportViolation(`${disks.length} disks were left behind, first: ${disks[0]?.id ?? ''}`);
  const addresses = (await state.store.addresses.list()).filter(
    ({ value }) => value.releasedAt === undefined,
  );
  if (addresses.length !== size) {
    state.reportViolation(`${addresses.length} addresses are in use by ${size} machines`);
  }
}
