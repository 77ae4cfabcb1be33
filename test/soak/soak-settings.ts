// SPDX-License-Identifier: Apache-2.0
// The simulated cluster and the fleet settings of a seed.
import type { FleetSettings, SourceSettings } from '../../src/fleet/index.ts';
import {
  aPool,
  aRegion,
  IMAGE_SOURCE,
  REGION,
  STATIC_NETWORK,
  someSettings,
  templateSource,
} from '../../src/fleet/testing/settings.ts';
import type { ClusterDescription } from '../../src/sim/proxmox/index.ts';
import { threeHostCluster } from '../proxmox/simulated-region.ts';

export const HOSTS = ['pve1', 'pve2', 'pve3'] as const;
export const FIRST_TEMPLATE_ID = 9_000;
/** Time between passes while work is in progress. */
export const BUSY_MS = 20_000;
const SOURCES: readonly SourceSettings[] = [
  IMAGE_SOURCE,
  templateSource('full'),
  templateSource('linked'),
  { kind: 'netboot' },
];

/** One template per host, because their disks are on local storage. */
export function soakCluster(): ClusterDescription {
  const base = threeHostCluster();
  const [template] = base.vms ?? [];
  if (template === undefined) return base;
  const vms = HOSTS.map((host, at) => ({ ...template, host, id: FIRST_TEMPLATE_ID + at }));
  return { ...base, vms };
}

export function soakSettings(seed: number): FleetSettings {
  const source = SOURCES[seed % SOURCES.length] ?? IMAGE_SOURCE;
  const { v4 } = STATIC_NETWORK;
  const network = {
    ...STATIC_NETWORK,
    v4: { ...v4, ranges: [{ from: '10.10.10.11', to: '10.10.10.110' }] } as typeof v4,
  };
  const region = aRegion({
    storage: { images: 'local', seeds: 'shared', disks: ['local-lvm'] },
    vmIds: { from: 1_250, to: 1_399 },
  });
  const isNetboot = source.kind === 'netboot';
  const pool = aPool({ source, network, ...(isNetboot && { seed: undefined }) });
  return someSettings([pool], {
    regions: { [REGION]: region },
    backoff: { initialMs: 60_000, maxMs: 5 * 60_000 },
    orphans: 'delete',
    busyMs: BUSY_MS,
    reconcileMs: 5 * 60_000,
  });
}
