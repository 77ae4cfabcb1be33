// SPDX-License-Identifier: Apache-2.0
// A fleet, the Proxmox client and the simulator in one process, on virtual time.
import { createFleet, type Fleet, type FleetSettings } from '../../src/fleet/index.ts';
import {
  aPool,
  aRegion,
  IMAGE_SOURCE,
  REGION,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../../src/fleet/testing/settings.ts';
import { addressesInUse } from '../../src/model/held-addresses.ts';
import { RECONCILE_LEASE } from '../../src/model/lease.ts';
import type { Machine } from '../../src/model/machine.ts';
import { readMarker } from '../../src/model/marker.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { SeededRandom } from '../../src/ports/fakes/seeded-random.ts';
import type { Hypervisor } from '../../src/ports/hypervisor.ts';
import type { Store } from '../../src/ports/store.ts';
import {
  type SimulatedRegion,
  simulatedRegion,
  threeHostCluster,
} from '../proxmox/simulated-region.ts';

export const REASON = { by: 'test', reason: 'requested by a test' };

export const SOURCES = {
  image: IMAGE_SOURCE,
  'full clone': templateSource('full'),
  'linked clone': templateSource('linked'),
  netboot: { kind: 'netboot' },
} as const;

export type SourceName = keyof typeof SOURCES;

export interface Site extends SimulatedRegion {
  readonly store: MemoryStore;
  readonly settings: FleetSettings;
}

export function createSettings(
  source: SourceName,
  overrides: Partial<FleetSettings> = {},
): FleetSettings {
  const { seed, ...rest } = aPool({ source: SOURCES[source], network: STATIC_NETWORK });
  const region = aRegion({ storage: { images: 'local', seeds: 'shared', disks: ['local-lvm'] } });
  // The simulated network has no netboot server; a guest without a seed boots anyway.
  const pool = { ...rest, seed: source === 'netboot' ? undefined : seed };
  return someSettings([pool], { regions: { [REGION]: region }, ...overrides });
}

/** A template of the same name on each host, because their disks are on local storage. */
export function clusterWithTemplates() {
  const base = threeHostCluster();
  const [template] = base.vms ?? [];
  if (template === undefined) return base;
  return {
    ...base,
    vms: ['pve1', 'pve2', 'pve3'].map((host, at) => ({ ...template, host, id: 9_000 + at })),
  };
}

export function createSite(source: SourceName, overrides: Partial<FleetSettings> = {}): Site {
  const region = simulatedRegion({ cluster: clusterWithTemplates() }, { region: REGION });
  const store = new MemoryStore({ clock: region.clock });
  return { ...region, store, settings: createSettings(source, overrides) };
}

export interface ProcessParts {
  readonly store?: Store;
  readonly hypervisor?: Hypervisor;
  readonly seed?: number;
}

/** A fleet of its own, as another process on the site would have. */
export function createProcess(site: Site, parts: ProcessParts = {}): Fleet {
  return createFleet({
    clock: site.clock,
    store: parts.store ?? site.store,
    hypervisors: new Map([[REGION, parts.hypervisor ?? site.hypervisor]]),
    random: new SeededRandom(parts.seed ?? 1),
    settings: site.settings,
  });
}

export async function reconcileUntilIdle(
  site: Site,
  fleet: Fleet,
  {
    store = site.store,
    maxPasses = 1_500,
  }: { readonly store?: Store; readonly maxPasses?: number } = {},
): Promise<void> {
  let idlePasses = 0;
  for (let pass = 0; pass < maxPasses && idlePasses < 2; pass += 1) {
    const lease = await store.leases.acquire({
      name: RECONCILE_LEASE,
      holder: 'test',
      durationMs: 3_600_000,
    });
    const { inProgress, undecided } = await site.settled(fleet.reconcileOnce(lease));
    idlePasses = inProgress === 0 && undecided.length === 0 ? idlePasses + 1 : 0;
    await site.clock.advance(2_000);
  }
}

/** VMs, seeds and disks on the site, without templates and images. */
export function readInventory({ sim }: Site) {
  const { vms, volumes } = sim.inspect();
  const own = vms.filter(({ config }) => config['template'] !== '1');
  return {
    vms: own.map(({ id }) => id),
    machines: own.map(({ config }) => {
      const reading = readMarker(config['description']);
      return reading.kind === 'marked' ? reading.marker.machine : reading.kind;
    }),
    isos: volumes.filter(({ content }) => content === 'iso').map(({ id }) => id),
    disks: volumes
      .filter(({ vmId }) => vmId !== undefined && vmId < 9_000)
      .map(({ vmId }) => vmId ?? 0),
  };
}

export async function readMachines(store: Store): Promise<readonly Machine[]> {
  return (await store.machines.list()).map(({ value }) => value);
}

export async function countAddressesInUse(store: Store): Promise<number> {
  return addressesInUse(await readMachines(store)).length;
}
