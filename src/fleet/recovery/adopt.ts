// SPDX-License-Identifier: Apache-2.0
// VMs of ours that no record knows: the database was lost, or a call came through that everybody had given up.
// Everything needed is on the VM. Each becomes a machine again, where it stands; one that was being deleted goes on
// being deleted; one whose machine is over, or lives elsewhere, is removed.
import { type Machine, mayExist } from '../../model/machine.ts';
import { judgeOwnership, type Marker, type Ownership, readMarker } from '../../model/marker.ts';
import type { RegionView, VmConfig, VmSummary } from '../../ports/hypervisor.ts';
import { rememberAddresses, vmFingerprint } from '../capacity/taken-addresses.ts';
import { isBeingCreated } from '../context/being-created.ts';
import { isMachineError, isVmGone } from '../context/machine-error.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import { adoptedMachine } from './adopted-machine.ts';
import { removeOrphanedVm } from './remove-orphaned-vm.ts';

/** The regions in which somebody makes a VM of which nobody can say yet whose it is. */
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

/** Not known from a record, and in our range or with one of our tags: nobody else's VM costs us a call. */
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

type Verdict = 'ours' | 'unread' | 'undecided' | 'stranger';

async function inspectVm(
  context: ReconcileContext,
  region: string,
  vm: VmSummary,
): Promise<Verdict> {
  const key = `${region}/${vm.vmId}`;
  const looks = vmFingerprint(vm);
  if (context.state.unmanaged.get(key) === looks && vm.name !== undefined) return 'stranger';
  context.state.unmanaged.delete(key);
  const config = await configOf(context, region, vm);
  if (config === 'gone') return 'stranger';
  if (config === undefined) return 'unread';
  if (isBeingCreated(config)) return 'undecided';
  // Known before anything is done with it: whatever becomes of that, none of them is given out twice.
  rememberAddresses(context, region, vm, config);
  const ownership = ownershipOf(context, config);
  if (ownership.owned && !config.isTemplate) {
    const taken = await tryAdopt(context, region, { config, marker: ownership.marker });
    if (taken === 'ours') context.state.addresses.delete(key);
    if (taken !== 'stranger') return taken;
  }
  context.state.unmanaged.set(key, looks);
  await recordDamagedMarker(context, region, config);
  return 'stranger';
}

/** Of a VM that no machine claims: one that is over still tells whether this is its VM or a copy in its place. */
export function ownershipOf(context: ReconcileContext, config: VmConfig): Ownership {
  const { cluster } = context.settings;
  const ownership = judgeOwnership({ ...config, configured: false }, cluster);
  if (!ownership.owned) return ownership;
  const { machine, readySinceSeconds } = ownership.marker;
  const known = context.records.find(machine);
  const wasConfigured = known?.configured === true && known.placement?.vmId === config.vmId;
  const configured = wasConfigured || readySinceSeconds !== undefined;
  return judgeOwnership({ ...config, configured }, cluster);
}

/** Undefined while it cannot be read: it may be ours. */
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

interface Found {
  readonly config: VmConfig;
  readonly marker: Marker;
}

/** Trouble with this one VM is tried again in the next round. */
async function tryAdopt(context: ReconcileContext, region: string, found: Found): Promise<Verdict> {
  try {
    return (await adoptVm(context, region, found)) ? 'ours' : 'stranger';
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
  { config, marker }: Found,
): Promise<boolean> {
  const known = context.records.find(marker.machine);
  if (known !== undefined) {
    await removeOrphanedVm(context, region, { config, why: whyDouble(known) });
    return true;
  }
  const { power } = await context.hypervisor(region).vmState(config, context.readOptions);
  const hasIdentity = config.smbiosUuid === marker.machine;
  // A clone that was never configured has not run either.
  if (!hasIdentity && power === 'running') return false;
  const adopted = adoptedMachine(context, { region, config, marker, power });
  const machine = withoutDoubleAddress(context, adopted, marker);
  await leaseAddresses(context, region, marker);
  await context.records.putMachine(machine);
  await context.recordMachine(machine, {
    kind: 'saw',
    reason: 'MachineAdopted',
    message: `VM ${config.vmId} is a machine of pool ${marker.pool} that no record knew; it goes on from ${machine.phase}`,
    numbers: { vmId: config.vmId },
  });
  return true;
}

/**
 * A call that came through late may have made a machine whose address has been given to another since. It has
 * never run, so it is taken away again. One that runs stays: two at work with one address are a person's to
 * untangle.
 */
function withoutDoubleAddress(
  context: ReconcileContext,
  machine: Machine,
  marker: Marker,
): Machine {
  const isNew = machine.phase === 'configuring';
  const { region = '' } = machine.placement ?? {};
  const double = marker.addresses.map(bare).find((address) => isHeld(context, region, address));
  if (double === undefined || !isNew) return machine;
  return { ...machine, phase: 'deleting', deletionReason: `another machine holds ${double}` };
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

function whyDouble({ phase, placement }: Machine): string {
  return mayExist(phase) && placement !== undefined
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
    message: `VM ${config.vmId} is not touched: ${reading.problem}`,
  });
}
