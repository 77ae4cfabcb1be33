// SPDX-License-Identifier: Apache-2.0
// Addresses in use without a lease of ours: in the configuration of any VM of the region, or of a Node. A
// configuration is read once, and again when the VM's summary changes or after an hour. Pools with DHCP read none.

import { readMarker } from '../../model/marker.ts';
import type { RegionView, VmConfig, VmSummary } from '../../ports/hypervisor.ts';
import { knownNodes } from '../context/cluster-reading.ts';
import { forEachConcurrent } from '../context/for-each-concurrent.ts';
import { isMachineError } from '../context/machine-error.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

const CONCURRENT_READS = 8;
/** A changed address does not show in the summary, so a few of the oldest configurations are read again. */
const MAX_AGE_MS = 60 * 60_000;
const REREADS_PER_PASS = 10;

/** Reads at most `maxReads` configurations; returns what is known then. */
export async function takenAddresses(
  context: ReconcileContext,
  view: RegionView,
  maxReads = Number.POSITIVE_INFINITY,
): Promise<readonly string[]> {
  const others = view.vms.filter(
    ({ vmId, isTemplate }) => !context.records.index.isVmClaimed(view.region, vmId) && !isTemplate,
  );
  forgetGone(context, view);
  const unknown = toRead(context, view.region, others).slice(0, maxReads);
  await forEachConcurrent(unknown, { limit: CONCURRENT_READS }, (vm) =>
    learn(context, view.region, vm),
  );
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

/** Remembers the addresses in a VM's configuration. A machine of another cluster has them in its marker. */
// oxlint-disable-next-line max-params -- context, region, VM and its configuration
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
    return context.now - readAt > MAX_AGE_MS && known(vm)?.fingerprint === vmFingerprint(vm);
  });
  return [...unknown, ...old.slice(0, REREADS_PER_PASS)];
}

/** A VM that cannot be read is read again in a later pass: a host that is down must not block every pool. */
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
