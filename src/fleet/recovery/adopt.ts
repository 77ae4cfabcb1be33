// SPDX-License-Identifier: Apache-2.0
// Adopts VMs of ours without a record: the database was lost, or a creation took effect after it was abandoned. The
// marker on the VM has everything needed. A VM that was being deleted continues to be deleted; a VM whose machine is
// over, or has another VM, is removed.
import {
  type Machine,
  mayHaveVm,
  parseMachineId,
  withoutPrefixLength,
} from '../../model/machine.ts';
import {
  isIgnored,
  type Marker,
  type Ownership,
  readMarker,
  verifyOwnership,
} from '../../model/marker.ts';
import { groupTag, poolTag } from '../../model/names.ts';
import { describeGroup, isTemplateGroup, roleGroup, TEMPLATE_ROLE } from '../../model/role.ts';
import type { RegionView, VmConfig, VmSummary } from '../../ports/hypervisor.ts';
import { rememberAddresses, vmFingerprint } from '../capacity/taken-addresses.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import { isMachineError, isVmGone } from '../context/machine-error.ts';
import { DONE, type ReconcileResult, requeue } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { RegionSettings } from '../context/settings.ts';
import { unknownVmReason } from '../context/unknown-vms.ts';
import { settingsOf } from '../context/vm-settings.ts';
import { type AdoptedVm, adoptedMachine } from './adopted-machine.ts';
import { mayBecomeOurs } from './incomplete-vm.ts';
import { removeOrphanedVm } from './remove-orphaned-vm.ts';

/**
 * Inspects the candidates; `context.undecided` then has the regions with a VM whose owner is not known yet. Returns the
 * regions in which every candidate has been inspected, whether it could be read or not.
 */
export async function adoptVms(
  context: ReconcileContext,
  jobs: HostJobs,
): Promise<readonly string[]> {
  const keys: string[] = [];
  for (const view of context.views.values()) {
    for (const vm of candidates(context, view)) {
      if (isKnownUnmanaged(context, view.region, vm)) continue;
      const { region } = view;
      const { vmId, host } = vm;
      keys.push(jobKey(region, vmId));
      jobs.start(jobKey(region, vmId), { region, host }, (newest) =>
        inspectVm(newest, region, vmId),
      );
    }
  }
  await jobs.settle(keys);
  const decided = [...context.views.values()]
    .filter((view) => decide(context, view))
    .map(({ region }) => region);
  for (const region of context.views.keys()) {
    if (!context.undecided.has(region)) context.state.identifiedRegions.add(region);
  }
  return decided;
}

const RECHECK_MS = 500;

function jobKey(region: string, vmId: number): string {
  return `VM ${vmId} in region ${region}`;
}

/** Whether every candidate of the region has been inspected. */
function decide(context: ReconcileContext, view: RegionView): boolean {
  const { region } = view;
  const open = openCandidates(context, view);
  const findings = open.map((vm) => context.state.inspected.get(`${region}/${vm.vmId}`));
  const isDecided = findings.every((one) => one === 'orphaned' || one === 'half-made');
  if (isDecided) context.undecided.delete(region);
  const unread = open.find((_, at) => findings[at] === undefined || findings[at] === 'unread');
  if (unread !== undefined) context.unreadVms.set(region, unread);
  return !findings.includes(undefined);
}

function openCandidates(context: ReconcileContext, view: RegionView): readonly VmSummary[] {
  return candidates(context, view).filter((vm) => !isKnownUnmanaged(context, view.region, vm));
}

/** Whether the VM was found to be unmanaged and has not changed since. A VM without a name may be a new clone. */
function isKnownUnmanaged({ state }: ReconcileContext, region: string, vm: VmSummary): boolean {
  return state.unmanaged.get(`${region}/${vm.vmId}`) === vmFingerprint(vm) && vm.name !== undefined;
}

/** VMs without a record that are in our id range or have one of our tags; no other VM is inspected. */
export function candidates(context: ReconcileContext, view: RegionView): readonly VmSummary[] {
  const region = context.region(view.region);
  return view.vms.filter(
    (vm) =>
      (!vm.isTemplate || vm.tags.includes(groupTag(roleGroup(TEMPLATE_ROLE)))) &&
      !context.records.index.isVmClaimed(view.region, vm.vmId) &&
      (isInRange(region, vm) || region.tags.some((tag) => vm.tags.includes(tag))),
  );
}

function isInRange({ vmIds }: RegionSettings, { vmId }: Pick<VmSummary, 'vmId'>): boolean {
  return vmId >= vmIds.from && vmId <= vmIds.to;
}

async function inspectVm(
  context: ReconcileContext,
  region: string,
  vmId: number,
): Promise<ReconcileResult> {
  const { inspected, unmanaged, addresses, leftAlone, orphanTasks } = context.state;
  const key = `${region}/${vmId}`;
  unmanaged.delete(key);
  leftAlone.delete(key);
  const vm = context.vmInView({ region, vmId });
  // A worker may have recorded the VM id since the candidates were listed.
  if (vm === undefined || context.records.index.isVmClaimed(region, vmId)) {
    inspected.delete(key);
    orphanTasks.delete(key);
    return DONE;
  }
  const config = await configOf(context, region, vm);
  if (config === 'gone') return forgetUnlessInView(context, region, vm);
  if (config === undefined || config.isBeingCreated) {
    inspected.set(key, await findingOf(context, region, config));
    return DONE;
  }
  // Until it is adopted, found to be unmanaged or orphaned; also while that fails.
  inspected.set(key, 'undecided');
  // First of all: none of its addresses is given to another machine, whatever happens next.
  rememberAddresses(context, region, vm, config);
  const ownership = ownershipOf(context, region, config);
  if (ownership.owned && (!config.isTemplate || isTemplateGroup(ownership.marker.pool))) {
    const result = await adoptVm(context, region, { config, marker: ownership.marker });
    if (result !== 'unmanaged') {
      addresses.delete(key);
      if (result.next === 'done') inspected.delete(key);
      return result;
    }
  }
  unmanaged.set(key, vmFingerprint(vm));
  inspected.delete(key);
  await recordUnmanaged(context, region, config);
  return DONE;
}

async function findingOf(context: ReconcileContext, region: string, config: VmConfig | undefined) {
  if (config === undefined) return 'unread';
  return (await mayBecomeOurs(context, region, config)) ? 'undecided' : 'half-made';
}

/** The VM was deleted since the view was read: it is decided until a view shows something else. */
function forgetUnlessInView(
  { state }: ReconcileContext,
  region: string,
  vm: VmSummary,
): ReconcileResult {
  const key = `${region}/${vm.vmId}`;
  state.unmanaged.set(key, vmFingerprint(vm));
  state.inspected.delete(key);
  state.orphanTasks.delete(key);
  return DONE;
}

/** Ownership of a VM without a machine. The record of a machine that is over distinguishes its VM from a copy. */
export function ownershipOf(
  context: ReconcileContext,
  region: string,
  config: VmConfig,
): Ownership {
  const owner = { cluster: context.settings.cluster, region };
  const ownership = verifyOwnership({ ...config, configured: false }, owner);
  if (!ownership.owned) return ownership;
  const { machine, readySinceSeconds } = ownership.marker;
  const known = context.records.find(machine);
  const knownRegion = known?.placement?.region ?? region;
  // Markers of earlier versions have no region.
  if (knownRegion !== region)
    return { owned: false, reason: `its machine is in region ${knownRegion}` };
  const wasConfigured = known?.configured === true && known.placement?.vmId === config.vmId;
  const configured =
    wasConfigured ||
    readySinceSeconds !== undefined ||
    mustHaveUuid(context, region, ownership.marker);
  return verifyOwnership({ ...config, configured }, owner);
}

/** Only a clone gets its UUID after its creation, and it is not started before. */
function mustHaveUuid(context: ReconcileContext, region: string, { pool, vmId }: Marker): boolean {
  const source = context.pool(pool)?.source.kind ?? 'template';
  return source !== 'template' || context.vmInView({ region, vmId })?.power === 'running';
}

/** Undefined while the VM cannot be read: it may be ours. */
async function configOf(
  context: ReconcileContext,
  region: string,
  vm: VmSummary,
): Promise<VmConfig | 'gone' | undefined> {
  try {
    return await context.hypervisor(region).vmConfig(vm, context.readOptions);
  } catch (error) {
    if (isVmGone(error)) return 'gone';
    if (isMachineError(error)) return undefined;
    throw error;
  }
}

interface OwnedVm {
  readonly config: VmConfig;
  readonly marker: Marker;
}

async function adoptVm(
  context: ReconcileContext,
  region: string,
  { config, marker }: OwnedVm,
): Promise<ReconcileResult | 'unmanaged'> {
  const known = context.records.find(marker.machine);
  if (known !== undefined) {
    if (context.records.index.isVmClaimed(region, config.vmId)) return DONE;
    const hasNoOtherVm = known.phase === 'requested' || isPlacedByOlderRecord(context, known);
    if (!hasNoOtherVm && mayBeInUse(known, marker)) return 'unmanaged';
    if (!hasNoOtherVm) {
      context.state.inspected.set(`${region}/${config.vmId}`, 'orphaned');
      return removeOrphanedVm(context, region, { config, marker, why: duplicateReason(known) });
    }
  }
  const { adopting } = context.state;
  if (adopting.has(marker.machine) || mayBeDuplicate(context, region, marker)) {
    return requeue(RECHECK_MS, 'another VM of its machine may be adopted first');
  }
  adopting.add(marker.machine);
  try {
    const { power } = await context.hypervisor(region).vmState(config, context.readOptions);
    const hasIdentity = config.smbiosUuid === marker.machine;
    // A clone is started only after it was configured: a running one without our UUID is not ours.
    if (!hasIdentity && power === 'running') return 'unmanaged';
    await recordAdopted(context, { region, config, marker, power });
    return DONE;
  } finally {
    adopting.delete(marker.machine);
  }
}

/** Of two VMs of one machine, the one that was ready is the machine: it is read before another one is adopted. */
function mayBeDuplicate(
  context: ReconcileContext,
  region: string,
  { readySinceSeconds }: Marker,
): boolean {
  const view = context.views.get(region);
  if (readySinceSeconds !== undefined || view === undefined) return false;
  return openCandidates(context, view).some(
    ({ vmId }) => !context.state.inspected.has(`${region}/${vmId}`),
  );
}

/** Nothing has been created there: `placed` waits until the VMs of the region are identified. */
function isPlacedByOlderRecord(context: ReconcileContext, machine: Machine): boolean {
  const pool = settingsOf(context.settings, machine);
  if (machine.phase !== 'placed' || pool === undefined) return false;
  return unknownVmReason(context, machine, pool) !== undefined;
}

/** Writes the record of a machine whose VM proves what it is. */
export async function recordAdopted(context: ReconcileContext, found: AdoptedVm): Promise<void> {
  const { config, marker } = found;
  const known = context.records.find(marker.machine);
  const adopted = adoptedMachine(context, found);
  const machine = { ...deletedIfAddressHeld(context, adopted, marker), ...requestOf(known) };
  await context.records.putMachine(machine);
  const why = known === undefined ? 'it had no record' : `its record said ${known.phase}`;
  await context.recordMachine(machine, {
    kind: 'saw',
    reason: 'MachineAdopted',
    message: `adopted VM ${config.vmId} as a machine of ${describeGroup(marker.pool)} in phase ${machine.phase}: ${why}`,
    numbers: { vmId: config.vmId },
  });
}

/** The record is older than the VM: the database was restored from a backup. Its request stays what it was. */
function requestOf(known: Machine | undefined): Partial<Machine> {
  if (known === undefined) return {};
  const { requestedAt, intent } = known;
  return { requestedAt, ...(intent !== undefined && { intent }) };
}

/**
 * Whether a VM whose machine is over or has another VM may be in use. A VM that was ready may run pods; a configured VM
 * whose machine is over was restored by a person, because its deletion was verified. Only a person removes these.
 */
export function mayBeInUse(
  { phase, configured }: Machine,
  { readySinceSeconds, deletingSinceSeconds }: Marker,
): boolean {
  if (phase === 'requested') return false;
  const wasDeleted = !mayHaveVm(phase) && configured === true;
  return wasDeleted || (readySinceSeconds !== undefined && deletingSinceSeconds === undefined);
}

/**
 * A creation that took effect late may have made a machine whose address another machine has got since. It has never
 * run, so it is deleted. A running one stays: a person must resolve two running machines with one address.
 */
function deletedIfAddressHeld(
  context: ReconcileContext,
  machine: Machine,
  marker: Marker,
): Machine {
  const isNew = machine.phase === 'configuring';
  const { region = '' } = machine.placement ?? {};
  const { index } = context.records;
  const held = marker.addresses.find(
    (address) => index.otherHolder(region, address, machine.id) !== undefined,
  );
  if (held === undefined || !isNew) return machine;
  const deletionReason = `another machine holds address ${withoutPrefixLength(held)}`;
  return { ...machine, phase: 'deleting', deletionReason };
}

function duplicateReason({ phase, placement }: Machine): string {
  return mayHaveVm(phase) && placement !== undefined
    ? `its machine is VM ${placement.vmId}`
    : `its machine is ${phase}`;
}

interface LeftAlone {
  readonly reason: string;
  readonly message: string;
}

/** Why a VM that looks like ours is left alone; undefined for other VMs and for VMs of other clusters. */
export function leftAloneReason(
  context: ReconcileContext,
  region: string,
  config: VmConfig,
): LeftAlone | undefined {
  const reading = readMarker(config.description);
  if (reading.kind === 'none') return unmarkedReason(context, region, config);
  if (reading.kind === 'damaged') {
    return { reason: 'MarkerDamaged', message: `its marker is damaged: ${reading.problem}` };
  }
  const { marker } = reading;
  if (marker.cluster !== context.settings.cluster) return undefined;
  const ownership = ownershipOf(context, region, config);
  if (!ownership.owned) return { reason: 'VmNotOurs', message: ownership.reason };
  const known = context.records.find(marker.machine);
  if (known === undefined || !mayBeInUse(known, marker)) return undefined;
  return { reason: 'DuplicateVm', message: `${duplicateReason(known)}, but it may be in use` };
}

/** A VM without a marker that has a machine's SMBIOS UUID, our tags, or an id in our range. */
function unmarkedReason(
  context: ReconcileContext,
  region: string,
  config: VmConfig,
): LeftAlone | undefined {
  if (isIgnored(config.description)) return undefined;
  const settings = context.region(region);
  const machine = machineWithUuid(context, config);
  const tag = config.tags.find((one) => ownTags(context, settings).includes(one));
  const message = (why: string) => `it has no marker, but ${why}`;
  if (machine !== undefined)
    return { reason: 'VmUnmarked', message: message(`the SMBIOS UUID of machine ${machine.id}`) };
  if (tag !== undefined) return { reason: 'VmUnmarked', message: message(`the tag ${tag}`) };
  if (!isInRange(settings, config)) return undefined;
  const { from, to } = settings.vmIds;
  return { reason: 'VmInIdRange', message: message(`an id in the region's range ${from}-${to}`) };
}

/** The managed tag and those of the pools; other tags of the region may be on any VM. */
function ownTags({ settings }: ReconcileContext, { tags }: RegionSettings): readonly string[] {
  return [...tags.slice(0, 1), ...Object.keys(settings.pools).map(poolTag)].map((tag) =>
    tag.toLowerCase(),
  );
}

export function machineWithUuid(
  { records }: ReconcileContext,
  { smbiosUuid = '' }: VmConfig,
): Machine | undefined {
  const id = parseMachineId(smbiosUuid);
  return id.ok ? records.find(id.value) : undefined;
}

async function recordUnmanaged(
  context: ReconcileContext,
  region: string,
  config: VmConfig,
): Promise<void> {
  const leftAlone = leftAloneReason(context, region, config);
  // The id alone says little: other users may have VMs in the range.
  if (leftAlone === undefined || leftAlone.reason === 'VmInIdRange') return;
  const key = `${region}/${config.vmId}`;
  const isDamaged = leftAlone.reason === 'MarkerDamaged';
  context.state.leftAlone.set(key, isDamaged ? 'damaged-marker' : 'vm-left-alone');
  await context.recordOnce(key, {
    kind: 'saw',
    subject: { region, host: config.host },
    reason: leftAlone.reason,
    message: `VM ${config.vmId} is left alone: ${leftAlone.message}`,
  });
}
