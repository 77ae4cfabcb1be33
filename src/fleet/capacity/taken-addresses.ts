// SPDX-License-Identifier: Apache-2.0
// Addresses that are somebody's although no lease of ours says so: named in the configurations of VMs, whoever made
// them, or had by Nodes. A configuration is read once, and again when its VM looks different or it was long ago;
// nothing is read for pools that ask for their addresses.

import { readMarker } from '../../model/marker.ts';
import type { RegionView, VmConfig, VmSummary } from '../../ports/hypervisor.ts';
import { claimedVmIds } from '../adoption/claimed.ts';
import { atOnce } from '../at-once.ts';
import { knownNodes } from '../nodes/sight.ts';
import { isLocalTrouble } from '../trouble.ts';
import type { Turn } from '../turn.ts';

const READS_AT_ONCE = 8;
/** Nobody tells when somebody changes an address; so few of the oldest are looked at again. */
const OLD_MS = 60 * 60_000;
const OLD_ONES_PER_TIME = 10;

/** As far as it is known after so many more configurations were read. */
export async function takenAddresses(
  turn: Turn,
  view: RegionView,
  mostReads = Number.POSITIVE_INFINITY,
): Promise<readonly string[]> {
  const claimed = claimedVmIds(turn, view.region);
  const others = view.vms.filter(({ vmId, isTemplate }) => !claimed.has(vmId) && !isTemplate);
  forgetGone(turn, view);
  const unknown = toRead(turn, view.region, others).slice(0, mostReads);
  await atOnce(unknown, READS_AT_ONCE, (vm) => learn(turn, view.region, vm));
  const known = others.flatMap(
    (vm) => turn.memory.addresses.get(keyOf(view.region, vm))?.addresses ?? [],
  );
  return [...known, ...knownNodes(turn.sight).flatMap(({ addresses }) => addresses)];
}

function forgetGone({ memory }: Turn, { region, vms }: RegionView): void {
  const there = new Set(vms.map((vm) => keyOf(region, vm)));
  for (const key of memory.addresses.keys()) {
    if (key.startsWith(`${region}/`) && !there.has(key)) memory.addresses.delete(key);
  }
}

/** What a VM's configuration says of its addresses; another cluster's machine has them in its marker. */
// oxlint-disable-next-line max-params -- where, which, and what it says
export function noteAddresses(turn: Turn, region: string, vm: VmSummary, config: VmConfig): void {
  const reading = readMarker(config.description);
  const marked = reading.kind === 'marked' ? reading.marker.addresses : [];
  turn.memory.addresses.set(keyOf(region, vm), {
    looks: looksOf(vm),
    readAt: turn.now,
    addresses: [...config.addresses, ...marked],
  });
}

export function looksOf({ host, name, lock, tags }: VmSummary): string {
  return [host, name, lock, ...tags].join(' ');
}

function keyOf(region: string, { vmId }: VmSummary): string {
  return `${region}/${vmId}`;
}

function toRead(turn: Turn, region: string, vms: readonly VmSummary[]): readonly VmSummary[] {
  const { addresses } = turn.memory;
  const known = (vm: VmSummary) => addresses.get(keyOf(region, vm));
  const unknown = vms.filter((vm) => known(vm)?.looks !== looksOf(vm));
  const old = vms.filter((vm) => {
    const readAt = known(vm)?.readAt ?? turn.now;
    return turn.now - readAt > OLD_MS && known(vm)?.looks === looksOf(vm);
  });
  return [...unknown, ...old.slice(0, OLD_ONES_PER_TIME)];
}

/** One that cannot be read now is asked for the next time: a host that is down must not stop every pool. */
async function learn(turn: Turn, region: string, vm: VmSummary): Promise<void> {
  try {
    noteAddresses(turn, region, vm, await turn.hypervisor(region).vmConfig(vm, turn.reading));
  } catch (error) {
    if (!isLocalTrouble(error)) throw error;
  }
}
