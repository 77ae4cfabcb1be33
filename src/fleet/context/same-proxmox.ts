// SPDX-License-Identifier: Apache-2.0
// Refuses two regions that are the same Proxmox under two names: each would take the machines of the other for its own
// duplicates. Host names prove nothing, since many separate hosts are called `pve`.
import type { Clock } from '../../ports/clock.ts';
import { InvalidConfig, PvescalerError } from '../../ports/errors.ts';
import type { Hypervisor, RegionView, VmRef, VmSummary } from '../../ports/hypervisor.ts';
import { type RegionViews, waitFor } from './region-views.ts';

interface Regions {
  readonly hypervisors: ReadonlyMap<string, Hypervisor>;
  readonly clock: Clock;
}

/** What is known about two regions with hosts of the same name, by a key of regions and hosts. */
export type ComparedRegions = Map<string, Comparison>;

interface Comparison {
  /** Undefined until it is known. */
  isSame?: boolean;
  /** Ids of the VMs that were compared, because certificates are not known; others may prove more. */
  comparedVms?: Set<number>;
  why: string;
  /** Why they are refused, or why they could not be compared; undefined while that is not known. */
  error?: PvescalerError | undefined;
  reading?: Promise<void> | undefined;
}

const SAMPLED_VMS = 3;

/** The views without regions that are the same Proxmox, or of which that is not known yet. */
export async function withoutSameRegions(
  regions: Regions,
  { views, stale, errors }: RegionViews,
  compared: ComparedRegions,
): Promise<RegionViews> {
  const pairs = pairsOf([...views.values()]);
  const comparisons = pairs.map((pair) => comparisonOf(regions, pair, compared));
  await waitFor(
    comparisons.flatMap(({ reading }) => reading ?? []),
    regions.clock,
  );
  const kept = new Map(views);
  const refused: Record<string, string> = { ...stale };
  const refusals: Record<string, PvescalerError> = { ...errors };
  for (const [at, [one, other]] of pairs.entries()) {
    const comparison = comparisons[at];
    if (comparison === undefined || comparison.isSame === false) continue;
    for (const { region } of [one, other]) {
      kept.delete(region);
      refused[region] = comparison.why;
      if (comparison.error !== undefined) refusals[region] = comparison.error;
    }
  }
  return { views: kept, stale: refused, errors: refusals };
}

type Pair = readonly [RegionView, RegionView];

/** Pairs of regions with a host of the same name. */
function pairsOf(views: readonly RegionView[]): readonly Pair[] {
  return views.flatMap((one, at) =>
    views
      .slice(at + 1)
      .filter((other) => sharedHosts([one, other]).length > 0)
      .map((other) => [one, other] as const),
  );
}

function sharedHosts([one, other]: Pair): readonly string[] {
  const names = new Set(other.hosts.map(({ name }) => name));
  return one.hosts.map(({ name }) => name).filter((name) => names.has(name));
}

function comparisonOf(regions: Regions, pair: Pair, compared: ComparedRegions): Comparison {
  const [one, other] = pair;
  const key = [one.region, other.region, ...sharedHosts(pair)].join(' ');
  const known = compared.get(key) ?? {
    why: `it is not known yet whether regions ${one.region} and ${other.region} are the same Proxmox`,
  };
  compared.set(key, known);
  if (known.isSame === undefined || hasNewVms(known, pair)) {
    known.reading ??= compare(regions, pair, known);
  }
  return known;
}

function hasNewVms({ isSame, comparedVms }: Comparison, pair: Pair): boolean {
  if (isSame !== false || comparedVms === undefined) return false;
  return sharedVmsOf(pair).some(({ vmId }) => !comparedVms.has(vmId));
}

async function compare(regions: Regions, pair: Pair, comparison: Comparison): Promise<void> {
  try {
    const proof = await findProof(regions, pair, comparison);
    comparison.isSame = proof !== undefined;
    const [{ region: one }, { region: other }] = pair;
    if (proof !== undefined) {
      comparison.why = `regions ${one} and ${other} are the same Proxmox (${proof}): remove one of them from the config`;
      comparison.error = new InvalidConfig('CONFIG_INVALID', comparison.why, {
        hint: `Remove region ${one} or ${other} from the config, and use the other one in its pools.`,
      });
    }
  } catch (error) {
    if (!(error instanceof PvescalerError) || error.code === 'CANCELLED') throw error;
    const [{ region: one }, { region: other }] = pair;
    comparison.why = `it cannot be determined whether regions ${one} and ${other} are the same Proxmox: ${error.message}`;
    comparison.error = error;
  } finally {
    comparison.reading = undefined;
  }
}

/** Certificates decide. A VM that was restored in the other region has the same id and SMBIOS UUID there. */
async function findProof(
  regions: Regions,
  pair: Pair,
  comparison: Comparison,
): Promise<string | undefined> {
  const [one, other] = await Promise.all(
    pair.map(({ region }) => hypervisorOf(regions, region).hostFingerprints()),
  );
  const known = sharedHosts(pair).filter((host) => one?.has(host) && other?.has(host));
  const same = known.find((host) => one?.get(host) === other?.get(host));
  if (same !== undefined) return `host ${same} has the same certificate in both`;
  if (known.length === 0) return findSameVm(regions, pair, (comparison.comparedVms ??= new Set()));
  delete comparison.comparedVms;
  return undefined;
}

/** VMs with the same id and name in both. */
function sharedVmsOf([one, other]: Pair): readonly VmSummary[] {
  const names = new Map(other.vms.map(({ vmId, name }) => [vmId, name]));
  return one.vms.filter(({ vmId, name }) => name !== undefined && names.get(vmId) === name);
}

async function findSameVm(
  regions: Regions,
  pair: Pair,
  comparedVms: Set<number>,
): Promise<string | undefined> {
  const unknown = sharedVmsOf(pair).filter(({ vmId }) => !comparedVms.has(vmId));
  for (const vm of unknown.slice(0, SAMPLED_VMS)) {
    const [first, second] = await Promise.all(
      pair.map(({ region }) => smbiosUuidOf(regions, region, vm)),
    );
    if (first !== undefined && first === second)
      return `VM ${vm.vmId} has the same SMBIOS UUID in both`;
    comparedVms.add(vm.vmId);
  }
  return undefined;
}

async function smbiosUuidOf(
  regions: Regions,
  region: string,
  vm: VmRef,
): Promise<string | undefined> {
  return (await hypervisorOf(regions, region).vmConfig(vm)).smbiosUuid;
}

function hypervisorOf({ hypervisors }: Regions, region: string): Hypervisor {
  const hypervisor = hypervisors.get(region);
  if (hypervisor === undefined) throw new Error(`no connection to region ${region}`);
  return hypervisor;
}
