// SPDX-License-Identifier: Apache-2.0
// The simulated regions of a seed, the settings of its installations, and which features the seed exercises.
import type { FleetSettings, PoolSettings, SourceSettings } from '../../src/fleet/index.ts';
import { aJoiningSeed } from '../../src/fleet/testing/joining-test-fleet.ts';
import {
  aPool,
  aRegion,
  IMAGE_SOURCE,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../../src/fleet/testing/settings.ts';
import type { ClusterDescription } from '../../src/sim/proxmox/index.ts';
import { defaultCluster } from '../../src/sim/proxmox/index.ts';
import { threeHostCluster } from '../proxmox/simulated-region.ts';

/** A cluster of three hosts. */
export const LAB = 'lab';
/** A single host with the name and the VM ids of a host of the other region. */
export const EDGE = 'edge';
export const FIRST_TEMPLATE_ID = 9_000;
export const VM_IDS = { from: 1_250, to: 1_399 };
/** Time between passes while work is in progress. */
export const BUSY_MS = 20_000;
/** How long a VM or a Node must be missing before its machine is deleted. */
export const LOST_AFTER_MS = 5 * 60_000;

/** When more machines of a pool seem lost, none is deleted: one of three may be. */
const MAX_LOST_PERCENTAGE = 45;

const SOURCES: readonly SourceSettings[] = [
  IMAGE_SOURCE,
  templateSource('full'),
  templateSource('linked'),
  { kind: 'netboot' },
];

/** What a seed has beside one region and one installation. Every seed has some of these. */
export interface SeedFeatures {
  readonly edge: boolean;
  readonly kubernetes: boolean;
  /** The records are objects of an API server. */
  readonly recordsInKubernetes: boolean;
  readonly secondInstallation: boolean;
  readonly clockJumps: boolean;
  readonly hungHost: boolean;
  /** Four times as many disruptions, so that they overlap. */
  readonly faultBurst: boolean;
}

export function featuresOf(seed: number): SeedFeatures {
  return {
    edge: seed % 3 !== 0,
    kubernetes: seed % 4 !== 0,
    recordsInKubernetes: seed % 4 !== 0 && Math.floor(seed / 4) % 3 === 1,
    secondInstallation: seed % 5 < 2,
    clockJumps: seed % 2 === 1,
    hungHost: seed % 7 < 3,
    faultBurst: seed % 9 === 0,
  };
}

export function hostsOf(region: string): readonly string[] {
  return region === EDGE ? ['pve1'] : ['pve1', 'pve2', 'pve3'];
}

/** One template per host, because their disks are on local storage. */
export function describeRegion(region: string): ClusterDescription {
  const { name, vms = [], containers = [], ...base } = threeHostCluster();
  const [template] = vms;
  if (template === undefined) throw new Error('the cluster has no template');
  const templates = hostsOf(region).map((host, at) => ({
    ...template,
    host,
    id: FIRST_TEMPLATE_ID + at,
  }));
  if (region === EDGE) return { ...base, hosts: defaultCluster(1).hosts, vms: templates };
  return { ...base, ...(name !== undefined && { name }), containers, vms: templates };
}

export interface InstallationDescription {
  readonly name: string;
  /** Identifies the installation in markers and names of seeds. */
  readonly cluster: string;
  /** URL of the API server that its guests join. */
  readonly server: string;
  readonly settings: FleetSettings;
}

/** The second installation uses the same region, VM ids, tags and storages, and a pool of the same name. */
export function describeInstallations(seed: number): readonly InstallationDescription[] {
  const { edge, secondInstallation } = featuresOf(seed);
  const at = (index: number) => SOURCES[index % SOURCES.length] ?? IMAGE_SOURCE;
  const first = describeInstallation(seed, 'a', [
    { name: 'workers', source: at(seed), isStatic: true, regions: [LAB] },
    {
      name: 'batch',
      source: at(seed + 1 + (Math.floor(seed / 4) % 3)),
      isStatic: false,
      regions: edge ? [EDGE, LAB] : [LAB],
    },
  ]);
  if (!secondInstallation) return [first];
  return [
    first,
    describeInstallation(seed, 'b', [
      { name: 'workers', source: at(seed + 2), isStatic: false, regions: [LAB] },
    ]),
  ];
}

interface PoolDescription {
  readonly name: string;
  readonly source: SourceSettings;
  readonly isStatic: boolean;
  readonly regions: readonly string[];
}

/** Small pools are often scaled to zero; large pools have several machines in progress at the same time. */
const MAX_POOL_SIZES = [3, 2];

function describeInstallation(
  seed: number,
  name: string,
  pools: readonly PoolDescription[],
): InstallationDescription {
  const server = `https://${name}.example:6443`;
  const cluster = `c0ffee00-0000-4000-8000-00000000000${name}`;
  const regions = [...new Set(pools.flatMap((pool) => pool.regions))];
  const joins = featuresOf(seed).kubernetes;
  const max = MAX_POOL_SIZES[Math.floor(seed / 4) % MAX_POOL_SIZES.length] ?? 1;
  return {
    name,
    cluster,
    server,
    settings: someSettings(
      pools.map((pool) => buildPool(pool, { max, server: joins ? server : undefined })),
      {
        cluster,
        regions: Object.fromEntries(
          regions.map((region) => [
            region,
            aRegion({
              name: region,
              storage: { images: 'local', seeds: 'shared', disks: ['local-lvm'] },
              vmIds: VM_IDS,
            }),
          ]),
        ),
        backoff: { initialMs: 60_000, maxMs: 5 * 60_000 },
        lostAfterMs: LOST_AFTER_MS,
        nodeLostAfterMs: LOST_AFTER_MS,
        guards: { maxTotalUnreadyPercentage: MAX_LOST_PERCENTAGE, okTotalUnreadyCount: 0 },
        orphans: 'delete',
        busyMs: BUSY_MS,
        reconcileMs: 5 * 60_000,
      },
    ),
  };
}

function buildPool(
  { name, source, isStatic, regions }: PoolDescription,
  { max, server }: { readonly max: number; readonly server: string | undefined },
): PoolSettings {
  const pool = aPool();
  const { v4 } = STATIC_NETWORK;
  const network = {
    ...STATIC_NETWORK,
    v4: { ...v4, ranges: [{ from: '10.10.10.11', to: '10.10.10.110' }] } as typeof v4,
  };
  // Without a seed a guest cannot learn how to join.
  const joins = server !== undefined && source.kind !== 'netboot';
  return {
    ...pool,
    name,
    source,
    regions,
    joins,
    limits: { ...pool.limits, max },
    ...(isStatic && { network }),
    ...(source.kind === 'netboot' && { seed: undefined }),
    ...(joins && { seed: joiningSeed(server) }),
  };
}

function joiningSeed(server: string): NonNullable<PoolSettings['seed']> {
  const seed = aJoiningSeed();
  const { join } = seed;
  if (join.kind !== 'k3s') throw new Error('the seed does not join with k3s');
  return { ...seed, join: { ...join, server, install: 'binary' } };
}
