// SPDX-License-Identifier: Apache-2.0
// Invariants that hold after every step. They are checked against the simulators' state, the plan and the durable
// records only; the engine under test is not consulted.
import type { Machine } from '../../src/model/machine.ts';
import { type Marker, readMarker } from '../../src/model/marker.ts';
import type { ClusterNode } from '../../src/ports/cluster.ts';
import type { Store } from '../../src/ports/store.ts';
import type { Inspection } from '../../src/sim/proxmox/index.ts';
import type { Installation } from './installation.ts';
import type { SoakState } from './soak-state.ts';

export type Vm = Inspection['vms'][number];

/** A VM of an installation, with the region it is in. */
export interface OwnVm {
  readonly region: string;
  readonly vm: Vm;
  readonly marker: Marker;
}

/** The marker of a VM that names this installation, this region and the VM's own id; undefined for every other VM. */
export function readOwnMarker(
  { id }: Pick<Installation, 'id'>,
  region: string,
  vm: Vm,
): Marker | undefined {
  const reading = readMarker(vm.config['description']);
  if (reading.kind !== 'marked') return undefined;
  const { marker } = reading;
  const isHere = marker.region === region && marker.vmId === vm.id;
  return marker.cluster === id && isHere ? marker : undefined;
}

export function listOwnVms(
  state: SoakState,
  installation: Installation,
  inspections = state.inspections(),
): readonly OwnVm[] {
  return [...inspections].flatMap(([region, { vms }]) =>
    vms.flatMap((vm) => {
      const marker = readOwnMarker(installation, region, vm);
      const isOwn = marker !== undefined && !state.isUnmanaged(region, vm.id);
      return isOwn ? [{ region, vm, marker }] : [];
    }),
  );
}

const COLLECTIONS = ['intents', 'machines', 'drains', 'pools'] as const;

/** A process that has synchronized its copy sees exactly what is durable. */
export async function checkCopy(
  state: SoakState,
  installation: Installation,
  copy: Store,
): Promise<void> {
  for (const name of COLLECTIONS) {
    const seen = (await copy[name].list()).map(({ value }) => JSON.stringify(value)).sort();
    const durable = (await installation.list(name)).map((value) => JSON.stringify(value)).sort();
    if (seen.join() !== durable.join())
      state.reportViolation(
        `${describe(installation)}: the new driver sees other ${name} than are stored: ${seen.join()} instead of ${durable.join()}`,
      );
  }
}

export async function checkInvariants(state: SoakState): Promise<readonly Machine[]> {
  const inspections = state.inspections();
  const all: Machine[] = [];
  const live: OwnVm[] = [];
  for (const installation of state.installations) {
    const own = listOwnVms(state, installation, inspections);
    const machines = await installation.machines();
    const present = own.map(({ marker }) => marker.machine);
    checkNoDuplicateVms(state, present);
    checkEndedMachinesHaveNoVm(state, installation, { machines, present });
    checkDeletionsWereAllowed(state, installation, own);
    checkUnmanagedNodes(state, installation);
    installation.presentBefore = new Set(present);
    all.push(...machines);
    const running = own.filter(({ vm }) => vm.running);
    checkCoolDown(state, installation, { machines, running });
    live.push(...running);
  }
  checkAddresses(state, live);
  checkUnmanagedVmsUnchanged(state, inspections);
  return all;
}

function checkNoDuplicateVms(state: SoakState, present: readonly string[]): void {
  const doubles = present.filter((id, at) => present.indexOf(id) !== at);
  for (const id of doubles) state.reportViolation(`machine ${id} has two VMs`);
}

export function snapshotVm(inspection: Inspection | undefined, vmId: number): string {
  const vm = inspection?.vms.find(({ id }) => id === vmId);
  const disks = inspection?.volumes.filter((volume) => volume.vmId === vmId) ?? [];
  return JSON.stringify([vm?.host, vm?.config, disks.map(({ id, size }) => [id, size])]);
}

function checkUnmanagedVmsUnchanged(
  state: SoakState,
  inspections: ReadonlyMap<string, Inspection>,
): void {
  for (const [key, before] of state.unmanagedVms) {
    const [region = '', vmId] = key.split('/');
    const after = snapshotVm(inspections.get(region), Number(vmId));
    if (after === before) continue;
    state.reportViolation(`unmanaged VM ${key} was changed`);
    state.unmanagedVms.set(key, after);
  }
}

function checkUnmanagedNodes(state: SoakState, { name, cluster }: Installation): void {
  const changed = cluster?.findUnmanagedChange();
  if (changed !== undefined)
    state.reportViolation(`unmanaged Node ${changed} of installation ${name} was changed`);
}

/** No two running VMs of a region have the same static address. */
function checkAddresses(state: SoakState, live: readonly OwnVm[]): void {
  const holders = new Map<string, number>();
  for (const { region, vm, marker } of live) {
    for (const address of marker.addresses) {
      const other = holders.get(`${region} ${address}`);
      if (other !== undefined)
        state.reportViolation(`VMs ${other} and ${vm.id} in ${region} both have ${address}`);
      holders.set(`${region} ${address}`, vm.id);
    }
  }
}

interface MachinesAndRunningVms {
  readonly machines: readonly Machine[];
  readonly running: readonly OwnVm[];
}

/** No machine gets an address that a VM of another one had less than the cool-down ago. */
function checkCoolDown(
  state: SoakState,
  { name, addressUse, takenOver, restored, hasReplacedDatabase }: Installation,
  { machines, running }: MachinesAndRunningVms,
): void {
  const now = { wall: state.clock.now(), monotonic: state.clock.monotonic() };
  if (hasReplacedDatabase) addressUse.forget();
  addressUse.advance(now, takenOver);
  for (const machine of machines) {
    const early = addressUse.assign(machine, now);
    if (early.length > 0 && !restored.has(machine.id))
      state.reportViolation(
        `installation ${name}: machine ${machine.id} got ${early.join()} in its cool-down`,
      );
  }
  for (const vm of running) addressUse.use(vm, now);
}

interface MachinesAndVms {
  readonly machines: readonly Machine[];
  readonly present: readonly string[];
}

/** A record may end only after its VM is gone. An older database may not know the VM. */
function checkEndedMachinesHaveNoVm(
  state: SoakState,
  installation: Installation,
  { machines, present }: MachinesAndVms,
): void {
  for (const { id, phase } of machines) {
    const isOver = phase === 'gone' || phase === 'failed';
    if (!isOver || installation.ended.has(id)) continue;
    installation.ended.add(id);
    const wasThere = present.includes(id) && installation.presentBefore.has(id);
    if (wasThere && !installation.hasReplacedDatabase) {
      state.reportViolation(`machine ${id} is ${phase}, but its VM still exists`);
    }
  }
}

/** A machine that was ready disappears only after a deletion request, an external deletion or a stated policy. */
function checkDeletionsWereAllowed(
  state: SoakState,
  installation: Installation,
  own: readonly OwnVm[],
): void {
  const { everReady, deletionRequested } = installation;
  for (const { marker } of own) {
    if (marker.readySinceSeconds !== undefined) everReady.add(marker.machine);
  }
  const present = new Set<string>(own.map(({ marker }) => marker.machine));
  for (const id of everReady) {
    if (present.has(id)) continue;
    everReady.delete(id);
    if (!deletionRequested.has(id) && !installation.isLost(id))
      state.reportViolation(`machine ${id} was deleted without a request`);
  }
}

/** Each pool has exactly the requested size: ready machines with their VMs, Nodes and addresses, and no leftovers. */
export async function checkConverged(
  state: SoakState,
  sizes: ReadonlyMap<Installation, ReadonlyMap<string, number>>,
): Promise<void> {
  for (const [installation, byPool] of sizes) {
    const present = listOwnVms(state, installation).map(({ marker }) => marker.machine);
    const all = (await installation.machines()).filter(({ phase }) => phase === 'ready');
    for (const [pool, size] of byPool) {
      const count = all.filter((machine) => machine.pool === pool).length;
      if (count !== size)
        state.reportViolation(`${describe(installation, pool)}: ${count} ready, ${size} requested`);
    }
    // A machine whose VM was taken over stays ready until its VM is read again; older records may give it another VM.
    const isCounted = (id: string) => !installation.takenOver.has(id);
    const ready = all.filter(({ id }) => isCounted(id));
    const [vms, expected] = [present.filter(isCounted), ready.map(({ id }) => id)].map(sortIds);
    if (vms !== expected)
      state.reportViolation(
        `${describe(installation)}: the VMs of ${vms} and the ready machines ${expected} differ`,
      );
    checkNodes(state, installation, ready);
    installation.hasReplacedDatabase = false;
  }
  for (const [region, { vms, volumes }] of state.inspections()) {
    const known = new Set(vms.map(({ id }) => id));
    const left = volumes.filter(
      ({ content, vmId }) => content === 'iso' || (vmId !== undefined && !known.has(vmId)),
    );
    if (left.length > 0)
      state.reportViolation(`${left.length} volumes were left in ${region}, first: ${left[0]?.id}`);
  }
}

function describe({ name }: Installation, pool?: string): string {
  return `installation ${name}${pool === undefined ? '' : `, pool ${pool}`}`;
}

function sortIds(ids: readonly string[]): string {
  return ids.toSorted().join();
}

function hasOtherVm(state: SoakState, providerId: string, systemUuid: string): boolean {
  const key = providerId.replace('proxmox://', '');
  if (state.unmanagedVms.has(key)) return true;
  const vms = [...state.inspections()].flatMap(([region, inspection]) =>
    inspection.vms.filter(({ id }) => `${region}/${id}` === key),
  );
  return vms.some(({ config }) => !(config['smbios1'] ?? '').includes(`uuid=${systemUuid}`));
}

function checkNodes(state: SoakState, installation: Installation, ready: readonly Machine[]): void {
  const { cluster, settings, takenOver } = installation;
  if (cluster === undefined) return;
  // After the loss of its record, a Node is kept while another VM has the id of its VM, also one of another installation.
  const isKept = ({ systemUuid, providerId }: ClusterNode) =>
    takenOver.has(systemUuid) || hasOtherVm(state, providerId, systemUuid);
  const nodes = [...cluster.machineNodes()].flatMap(([uuid, node]) => (isKept(node) ? [] : [uuid]));
  const expected = ready.filter(({ pool }) => settings.pools[pool]?.joins === true);
  if (sortIds(nodes) !== sortIds(expected.map(({ id }) => id))) {
    state.reportViolation(
      `${describe(installation)}: ${nodes.length} Nodes of ${expected.length} machines`,
    );
  }
}
