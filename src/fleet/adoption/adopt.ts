// SPDX-License-Identifier: Apache-2.0
// VMs of ours that no record knows: the database was lost, or a call came through that everybody had given up.
// Everything needed is on the VM. Each becomes a machine again, where it stands; one that was being deleted goes on
// being deleted; one whose machine is over, or lives elsewhere, is removed.
import { type Machine, mayExist } from '../../model/machine.ts';
import { judgeOwnership, type Marker, type Ownership, readMarker } from '../../model/marker.ts';
import type { RegionView, VmConfig, VmSummary } from '../../ports/hypervisor.ts';
import { looksOf, noteAddresses } from '../capacity/taken-addresses.ts';
import { isBeingMade } from '../lifecycle/being-made.ts';
import { isVmGone } from '../lifecycle/look.ts';
import { removeVm } from '../orphans/remove-vm.ts';
import { isLocalTrouble } from '../trouble.ts';
import type { Turn } from '../turn.ts';
import { adoptedMachine } from './adopted-machine.ts';
import { claimedVmIds } from './claimed.ts';

/** The regions in which somebody makes a VM of which nobody can say yet whose it is. */
export async function adopt(turn: Turn): Promise<ReadonlySet<string>> {
  const undecided = new Set<string>();
  for (const view of turn.views.values()) {
    for (const vm of candidates(turn, view)) {
      const verdict = await consider(turn, view.region, vm);
      if (verdict === 'unread') turn.unread.set(view.region, vm);
      if (verdict === 'unread' || verdict === 'undecided') undecided.add(view.region);
    }
  }
  return undecided;
}

/** Not known from a record, and in our range or with one of our tags: nobody else's VM costs us a call. */
export function candidates(turn: Turn, view: RegionView): readonly VmSummary[] {
  const region = turn.region(view.region);
  const { from, to } = region.vmIds;
  const claimed = claimedVmIds(turn, view.region);
  return view.vms.filter(
    (vm) =>
      !vm.isTemplate &&
      !claimed.has(vm.vmId) &&
      ((vm.vmId >= from && vm.vmId <= to) || region.tags.some((tag) => vm.tags.includes(tag))),
  );
}

type Verdict = 'ours' | 'unread' | 'undecided' | 'stranger';

async function consider(turn: Turn, region: string, vm: VmSummary): Promise<Verdict> {
  const key = `${region}/${vm.vmId}`;
  const looks = looksOf(vm);
  if (turn.memory.strangers.get(key) === looks && vm.name !== undefined) return 'stranger';
  turn.memory.strangers.delete(key);
  const config = await configOf(turn, region, vm);
  if (config === 'gone') return 'stranger';
  if (config === undefined) return 'unread';
  if (isBeingMade(config)) return 'undecided';
  // Known before anything is done with it: whatever becomes of that, none of them is given out twice.
  noteAddresses(turn, region, vm, config);
  const ownership = ownershipOf(turn, config);
  if (ownership.owned && !config.isTemplate) {
    const taken = await tryToTake(turn, region, { config, marker: ownership.marker });
    if (taken === 'ours') turn.memory.addresses.delete(key);
    if (taken !== 'stranger') return taken;
  }
  turn.memory.strangers.set(key, looks);
  await tellDamage(turn, region, config);
  return 'stranger';
}

/** Of a VM that no machine claims: one that is over still tells whether this is its VM or a copy in its place. */
export function ownershipOf(turn: Turn, config: VmConfig): Ownership {
  const { cluster } = turn.settings;
  const ownership = judgeOwnership({ ...config, configured: false }, cluster);
  if (!ownership.owned) return ownership;
  const { machine, readySinceSeconds } = ownership.marker;
  const known = turn.books.find(machine);
  const wasConfigured = known?.configured === true && known.placement?.vmId === config.vmId;
  const configured = wasConfigured || readySinceSeconds !== undefined;
  return judgeOwnership({ ...config, configured }, cluster);
}

/** Undefined while it cannot be read: it may be ours. */
async function configOf(
  turn: Turn,
  region: string,
  vm: VmSummary,
): Promise<VmConfig | 'gone' | undefined> {
  try {
    return await turn.hypervisor(region).vmConfig(vm, turn.reading);
  } catch (error) {
    if (isVmGone(error)) return 'gone';
    if (isLocalTrouble(error)) return undefined;
    throw error;
  }
}

interface Found {
  readonly config: VmConfig;
  readonly marker: Marker;
}

/** Trouble with this one VM is tried again in the next round. */
async function tryToTake(turn: Turn, region: string, found: Found): Promise<Verdict> {
  try {
    return (await take(turn, region, found)) ? 'ours' : 'stranger';
  } catch (error) {
    if (!isLocalTrouble(error)) throw error;
    await turn.tellOnce(`${region}/${found.config.vmId}`, {
      kind: 'failed',
      subject: { region, host: found.config.host },
      reason: error.code,
      message: `VM ${found.config.vmId}: ${error.message}`,
    });
    return 'undecided';
  }
}

async function take(turn: Turn, region: string, { config, marker }: Found): Promise<boolean> {
  const known = turn.books.find(marker.machine);
  if (known !== undefined) {
    await removeVm(turn, region, { config, why: whyDouble(known) });
    return true;
  }
  const { power } = await turn.hypervisor(region).vmState(config, turn.reading);
  const hasIdentity = config.smbiosUuid === marker.machine;
  // A clone that was never configured has not run either.
  if (!hasIdentity && power === 'running') return false;
  const adopted = adoptedMachine(turn, { region, config, marker, power });
  const machine = withoutDoubleAddress(turn, adopted, marker);
  await leaseAddresses(turn, region, marker);
  await turn.books.putMachine(machine);
  await turn.tellOf(machine, {
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
function withoutDoubleAddress(turn: Turn, machine: Machine, marker: Marker): Machine {
  const isNew = machine.phase === 'configuring';
  const { region = '' } = machine.placement ?? {};
  const double = marker.addresses.map(bare).find((address) => isHeld(turn, region, address));
  if (double === undefined || !isNew) return machine;
  return { ...machine, phase: 'deleting', deletionReason: `another machine holds ${double}` };
}

async function leaseAddresses(turn: Turn, region: string, marker: Marker): Promise<void> {
  const { machine, pool } = marker;
  for (const address of marker.addresses.map(bare)) {
    if (isHeld(turn, region, address)) continue;
    await turn.books.leaseAddress({ address, region, pool, machine, leasedAt: turn.now });
  }
}

function bare(cidr: string): string {
  return cidr.split('/')[0] ?? cidr;
}

function isHeld(turn: Turn, region: string, address: string): boolean {
  return turn.books.addresses.some(
    (lease) =>
      lease.region === region && lease.address === address && lease.releasedAt === undefined,
  );
}

function whyDouble({ phase, placement }: Machine): string {
  return mayExist(phase) && placement !== undefined
    ? `its machine is VM ${placement.vmId}`
    : `its machine is ${phase}`;
}

async function tellDamage(turn: Turn, region: string, config: VmConfig): Promise<void> {
  const reading = readMarker(config.description);
  if (reading.kind !== 'damaged') return;
  await turn.tellOnce(`${region}/${config.vmId}`, {
    kind: 'saw',
    subject: { region, host: config.host },
    reason: 'MarkerDamaged',
    message: `VM ${config.vmId} is not touched: ${reading.problem}`,
  });
}
