// SPDX-License-Identifier: Apache-2.0
// Addresses in use that no record of a machine has: in the configuration of any VM of the region, or of a Node. A
// configuration is read once, and again when the VM's summary changes or after an hour. Pools with DHCP read none.

import { readMarker } from '../../model/marker.ts';
import type { RegionView, VmConfig, VmSummary } from '../../ports/hypervisor.ts';
import { knownNodes } from '../context/cluster-reading.ts';
import type { HostJobs } from '../context/host-jobs.ts';
import { isMachineError } from '../context/machine-error.ts';
import { DONE } from '../context/machine-reconcile.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';
import type { PoolSettings } from '../context/settings.ts';
import { waitingVms } from '../context/vm-settings.ts';

/** A changed address does not show in the summary, so a few of the oldest configurations are read again. */
const MAX_AGE_MS = 60 * 60_000;
const REREADS_PER_PASS = 10;

export function hasStaticAddresses({ network }: PoolSettings): boolean {
  return network.v4.kind === 'static' || network.v6.kind === 'static';
}

/** Starts the reads that pools with static addresses need; returns the keys of the jobs. */
export function readAddresses(
  context: ReconcileContext,
  jobs: HostJobs,
  vms: readonly PoolSettings[] = waitingVms(context),
): readonly string[] {
  const all = [...Object.values(context.settings.pools), ...vms];
  const pools = all.filter(hasStaticAddresses);
  const regions = new Set(pools.flatMap((pool) => pool.regions));
  return [...context.views.values()]
    .filter(({ region }) => regions.has(region))
    .flatMap((view) => startReads(context, view, jobs));
}

function startReads(
  context: ReconcileContext,
  view: RegionView,
  jobs: HostJobs,
): readonly string[] {
  const { region } = view;
  forgetGone(context, view);
  return toRead(context, region, unclaimedVms(context, view)).map((vm) => {
    const key = `addresses of VM ${vm.vmId} in region ${region}`;
    jobs.start(key, { region, host: vm.host }, async (newest) => {
      await learn(newest, region, vm);
      return DONE;
    });
    return key;
  });
}

/** A VM of the region that has not been read yet; undefined when every VM has been. */
export function findUnreadVm(context: ReconcileContext, view: RegionView): VmSummary | undefined {
  const { addresses } = context.state;
  return unclaimedVms(context, view).find((vm) => !addresses.has(keyOf(view.region, vm)));
}

/** What is known now. */
export function takenAddresses(context: ReconcileContext, view: RegionView): readonly string[] {
  const ofVms = unclaimedVms(context, view).flatMap(
    (vm) => context.state.addresses.get(keyOf(view.region, vm))?.addresses ?? [],
  );
  const ofNodes = knownNodes(context.clusterReading).flatMap(({ addresses }) => addresses);
  return [...ofVms, ...ofNodes];
}

function unclaimedVms(
  context: ReconcileContext,
  { region, vms }: RegionView,
): readonly VmSummary[] {
  return vms.filter(
    ({ vmId, isTemplate }) => !context.records.index.isVmClaimed(region, vmId) && !isTemplate,
  );
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
    readAt: context.clock.monotonic(),
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
  const now = context.clock.monotonic();
  const known = (vm: VmSummary) => addresses.get(keyOf(region, vm));
  const unknown = vms.filter((vm) => known(vm)?.fingerprint !== vmFingerprint(vm));
  const old = vms.filter((vm) => {
    const readAt = known(vm)?.readAt ?? now;
    return now - readAt > MAX_AGE_MS && known(vm)?.fingerprint === vmFingerprint(vm);
  });
  return [...unknown, ...old.slice(0, REREADS_PER_PASS)];
}

/** A VM that cannot be read is read again in a later pass: a host that is down must not block every pool. */
async function learn(context: ReconcileContext, region: string, vm: VmSummary): Promise<void> {
  try {
    const config = await context.hypervisor(region).vmConfig(vm, context.readOptions);
    rememberAddresses(context, region, vm, config);
  } catch (error) {
    if (!isMachineError(error)) throw error;
    const key = keyOf(region, vm);
    const known = context.state.addresses.get(key)?.addresses ?? [];
    // Another fingerprint than the VM's: it is read again.
    const readAt = context.clock.monotonic();
    context.state.addresses.set(key, { fingerprint: '', readAt, addresses: known });
  }
}
