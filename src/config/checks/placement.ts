// SPDX-License-Identifier: Apache-2.0
// Regions and hosts of a pool: no duplicates, and only hosts that the regions allow.
import type { ConfigPath } from '../config-path.ts';
import { errorAt, type Finding } from '../issues/finding.ts';
import type { ConfigFile, PoolFile, RegionFile } from '../schema/index.ts';
import { quoteKey } from '../secrets/detect-secret.ts';

export function checkPlacement(
  path: ConfigPath,
  pool: PoolFile,
  file: ConfigFile,
): readonly Finding[] {
  const regions = pool.regions ?? [];
  const duplicates = regions.flatMap((name, index) =>
    regions.indexOf(name) < index
      ? [errorAt([...path, 'regions', index], 'appears twice in the list')]
      : [],
  );
  return [...duplicates, ...checkPoolHosts([...path, 'placement', 'hosts'], pool, file)];
}

function checkPoolHosts(path: ConfigPath, pool: PoolFile, file: ConfigFile): readonly Finding[] {
  const { allow, deny } = pool.placement.hosts;
  const contradicted = deny.flatMap((host, index) =>
    allow.includes(host)
      ? [errorAt([...path, 'deny', index], `host ${quoteKey(host)} is also in 'allow'`)]
      : [],
  );
  const regions = (pool.regions ?? []).map((name) => file.proxmox[name]);
  // An undefined or invalid region may allow the host.
  if (regions.length === 0 || regions.includes(undefined)) return contradicted;
  const outside = allow.flatMap((host, index) =>
    regions.some((region) => region !== undefined && allowsHost(region, host))
      ? []
      : [
          errorAt(
            [...path, 'allow', index],
            `host ${quoteKey(host)} is not in any region of the pool`,
          ),
        ],
  );
  return [...contradicted, ...outside];
}

function allowsHost({ hosts }: RegionFile, host: string): boolean {
  return !hosts.deny.includes(host) && (hosts.allow.length === 0 || hosts.allow.includes(host));
}
