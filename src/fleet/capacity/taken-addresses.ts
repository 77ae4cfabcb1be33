// SPDX-License-Identifier: Apache-2.0
// Addresses that are somebody's although no lease of ours says so: named in the configurations of VMs, whoever made
// them, or had by Nodes. A configuration is read once, and again when its VM looks different or it was long ago;
// nothing is read for pools that ask for their addresses.

import { readMarker } from '../../model/marker.ts';
import type { RegionView, VmConfig, VmSummary } from '../../ports/hypervisor.ts';
import { knownNodes } from '../context/cluster-reading.ts';
import { forEachConcurrent } from '../context/for-each-concurrent.ts';
import { isMachineError } from '../context/machine-error.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

const READS_AT_ONCE = 8;
/** Nobody tells when somebody changes an address; so few of the oldest are looked at again. */
const OLD_MS = 60 * 60_000;
const OLD_ONES_PER_TIME = 10;

/** As far as it is known after so many more configurations were read. */
export async function takenAddresses(
  context: ReconcileContext,
  view: RegionView,
  mostReads = Number.POSITIVE_INFINITY,
): Promise<readonly string[]> {
  const others = view.vms.filter(
    ({ vmId, isTemplate }) => !context.records.index.isVmClaimed(view.region, vmId) && !isTemplate,
  );
  forgetGone(context, view);
  const unknown = toRead(context, view.region, others).slice(0, mostReads);
  await forEachConcurrent(unknown, READS_AT_ONCE, (vm) => learn(context, view.region, vm));
  const known = others.flatMap(
    (vm) => context.state.addresses.get(keyOf(view.region, vm))?.addresses ?? [],
  );
  return [...known, ...knownNodes(context.clusterReading).flatMap(({ addresses }) => addresses)];
}

function forgetGone({ state }: ReconcileContext, { region, vms }: RegionView): void {
  const there = new Set(vms.map((vm) => keyOf(region, vm)));
  for (const key of state.addresses.keys()) {
    if (key.startsWith(`${region}/`) && !there.has(key)) state.addresses.delete(key);
  }
}

/** What a VM's configuration says of its addresses; another cluster's machine has them in its marker. */
// oxlint-disable-next-line max-params -- where, which, and what it says
export function rememberAddresses(
  context: ReconcileContext,
  region: string,
  vm: VmSummary,
  config: VmConfig,
): void {
  const reading = readMarker(config.description);
  const marked = reading.kind === 'marked' ? reading.marker.addresses : [];
  context.state.addresses.set(keyOf(region, vm), {
    fingerprint: vmFingerprint(vm),
    readAt: context.now,
    addresses: [...config.addresses, ...marked],
  });
}

export function vmFingerprint({ host, name, lock, tags }: VmSummary): string {
  return [host, name, lock, ...tags].join(' ');
}

function keyOf(region: string, { vmId }: VmSummary): string {
  return `${region}/${vmId}`;
}

function toRead(
  context: ReconcileContext,
  region: string,
  vms: readonly VmSummary[],
): readonly VmSummary[] {
  const { addresses } = context.state;
  const known = (vm: VmSummary) => addresses.get(keyOf(region, vm));
  const unknown = vms.filter((vm) => known(vm)?.fingerprint !== vmFingerprint(vm));
  const old = vms.filter((vm) => {
    const readAt = known(vm)?.readAt ?? context.now;
    return context.now - readAt > OLD_MS && known(vm)?.fingerprint === vmFingerprint(vm);
  });
  return [...unknown, ...old.slice(0, OLD_ONES_PER_TIME)];
}

/** One that cannot be read now is asked for the next time: a host that is down must not stop every pool. */
async function learn(context: ReconcileContext, region: string, vm: VmSummary): Promise<void> {
  try {
    rememberAddresses(
      context,
      region,
      vm,
      await context.hypervisor(region).vmConfig(vm, context.readOptions),
    );
  } catch (error) {
    if (!isMachineError(error)) throw error;
  }
}
