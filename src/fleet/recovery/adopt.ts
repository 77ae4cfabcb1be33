// SPDX-License-Identifier: Apache-2.0
// Adopts VMs of ours without a record: the database was lost, or a creation took effect after it was abandoned. The
// marker on the VM has everything needed. A VM that was being deleted continues to be deleted; a VM whose machine is
// over, or has another VM, is removed.
import { type Machine, mayHaveVm } from '../../model/machine.ts';
import { type Marker, type Ownership, readMarker, verifyOwnership } from '../../model/marker.ts';
import type { RegionView, VmConfig, VmSummary } from '../../ports/hypervisor.ts';
import { rememberAddresses, vmFingerprint } from '../capacity/taken-addresses.ts';
import { isMachineError, isVmGone } from '../context/machine-error.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { adoptedMachine } from './adopted-machine.ts';
import { removeOrphanedVm } from './remove-orphaned-vm.ts';

/** Returns the regions with a VM that is being created and whose owner is not known yet. */
export async function adoptVms(context: ReconcileContext): Promise<ReadonlySet<string>> {
  const undecided = new Set<string>();
  for (const view of context.views.values()) {
    for (const vm of candidates(context, view)) {
      const verdict = await inspectVm(context, view.region, vm);
      if (verdict === 'unread') context.unreadVms.set(view.region, vm);
      if (verdict === 'unread' || verdict === 'undecided') undecided.add(view.region);
    }
  }
  return undecided;
}

/** VMs without a record that are in our id range or have one of our tags; no other VM is inspected. */
export function candidates(context: ReconcileContext, view: RegionView): readonly VmSummary[] {
  const region = context.region(view.region);
  const { from, to } = region.vmIds;
  return view.vms.filter(
    (vm) =>
      !vm.isTemplate &&
      !context.records.index.isVmClaimed(view.region, vm.vmId) &&
      ((vm.vmId >= from && vm.vmId <= to) || region.tags.some((tag) => vm.tags.includes(tag))),
  );
}

type Verdict = 'ours' | 'unread' | 'undecided' | 'unmanaged';

async function inspectVm(
  context: ReconcileContext,
  region: string,
  vm: VmSummary,
): Promise<Verdict> {
  const key = `${region}/${vm.vmId}`;
  const fingerprint = vmFingerprint(vm);
  if (context.state.unmanaged.get(key) === fingerprint && vm.name !== undefined) return 'unmanaged';
  context.state.unmanaged.delete(key);
  const config = await configOf(context, region, vm);
  if (config === 'gone') return 'unmanaged';
  if (config === undefined) return 'unread';
  if (config.isBeingCreated) return 'undecided';
  // First of all: none of its addresses is given to another machine, whatever happens next.
  rememberAddresses(context, region, vm, config);
  const ownership = ownershipOf(context, config);
  if (ownership.owned && !config.isTemplate) {
    const verdict = await tryAdopt(context, region, { config, marker: ownership.marker });
    if (verdict === 'ours') context.state.addresses.delete(key);
    if (verdict !== 'unmanaged') return verdict;
  }
  context.state.unmanaged.set(key, fingerprint);
  await recordDamagedMarker(context, region, config);
  return 'unmanaged';
}

/** Ownership of a VM without a machine. The record of a machine that is over distinguishes its VM from a copy. */
export function ownershipOf(context: ReconcileContext, config: VmConfig): Ownership {
  const { cluster } = context.settings;
  const ownership = verifyOwnership({ ...config, configured: false }, cluster);
  if (!ownership.owned) return ownership;
  const { machine, readySinceSeconds } = ownership.marker;
  const known = context.records.find(machine);
  const wasConfigured = known?.configured === true && known.placement?.vmId === config.vmId;
  const configured = wasConfigured || readySinceSeconds !== undefined;
  return verifyOwnership({ ...config, configured }, cluster);
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

/** An error with one VM is retried in the next pass. */
async function tryAdopt(
  context: ReconcileContext,
  region: string,
  found: OwnedVm,
): Promise<Verdict> {
  try {
    return (await adoptVm(context, region, found)) ? 'ours' : 'unmanaged';
  } catch (error) {
    if (!isMachineError(error)) throw error;
    await context.recordOnce(`${region}/${found.config.vmId}`, {
      kind: 'failed',
      subject: { region, host: found.config.host },
      reason: error.code,
      message: `VM ${found.config.vmId}: ${error.message}`,
    });
    return 'undecided';
  }
}

async function adoptVm(
  context: ReconcileContext,
  region: string,
  { config, marker }: OwnedVm,
): Promise<boolean> {
  const known = context.records.find(marker.machine);
  if (known !== undefined) {
    // A worker may have recorded the VM id since the candidates were listed.
    if (context.records.index.isVmClaimed(region, config.vmId)) return true;
    await removeOrphanedVm(context, region, { config, why: duplicateReason(known) });
    return true;
  }
  const { power } = await context.hypervisor(region).vmState(config, context.readOptions);
  const hasIdentity = config.smbiosUuid === marker.machine;
  // A clone is started only after it was configured: a running one without our UUID is not ours.
  if (!hasIdentity && power === 'running') return false;
  const adopted = adoptedMachine(context, { region, config, marker, power });
  const machine = deletedIfAddressHeld(context, adopted, marker);
  await leaseAddresses(context, region, marker);
  await context.records.putMachine(machine);
  await context.recordMachine(machine, {
    kind: 'saw',
    reason: 'MachineAdopted',
    message: `adopted VM ${config.vmId} as a machine of pool ${marker.pool} in phase ${machine.phase}: it had no record`,
    numbers: { vmId: config.vmId },
  });
  return true;
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
  const held = marker.addresses.map(bare).find((address) => isHeld(context, region, address));
  if (held === undefined || !isNew) return machine;
  return { ...machine, phase: 'deleting', deletionReason: `another machine holds address ${held}` };
}

async function leaseAddresses(
  context: ReconcileContext,
  region: string,
  marker: Marker,
): Promise<void> {
  const { machine, pool } = marker;
  for (const address of marker.addresses.map(bare)) {
    if (isHeld(context, region, address)) continue;
    await context.records.leaseAddress({ address, region, pool, machine, leasedAt: context.now });
  }
}

function bare(cidr: string): string {
  return cidr.split('/')[0] ?? cidr;
}

function isHeld(context: ReconcileContext, region: string, address: string): boolean {
  return context.records.addresses.some(
    (lease) =>
      lease.region === region && lease.address === address && lease.releasedAt === undefined,
  );
}

function duplicateReason({ phase, placement }: Machine): string {
  return mayHaveVm(phase) && placement !== undefined
    ? `its machine is VM ${placement.vmId}`
    : `its machine is ${phase}`;
}

async function recordDamagedMarker(
  context: ReconcileContext,
  region: string,
  config: VmConfig,
): Promise<void> {
  const reading = readMarker(config.description);
  if (reading.kind !== 'damaged') return;
  await context.recordOnce(`${region}/${config.vmId}`, {
    kind: 'saw',
    subject: { region, host: config.host },
    reason: 'MarkerDamaged',
    message: `VM ${config.vmId} is not touched, its marker is damaged: ${reading.problem}`,
  });
}
