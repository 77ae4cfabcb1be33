// SPDX-License-Identifier: Apache-2.0
// Defaults that depend on other keys: a pool uses all regions, the only image, the only join recipe. If
// there is no single candidate, the key stays unset and the checks report it.
import type { ConfigFile, PoolFile, RegionFile } from '../schema/index.ts';
import { JOIN_KINDS } from '../schema/join.ts';

export function applyDependentDefaults(file: ConfigFile): ConfigFile {
  return {
    ...file,
    proxmox: Object.fromEntries(
      Object.entries(file.proxmox).map(([name, region]) => [name, applyRegionDefaults(region)]),
    ),
    pools: file.pools.map((pool) => applyPoolDefaults(pool, file)),
    vms: { ...file.vms, from: file.vms.from ?? findOnlySource(file) },
  };
}

function applyRegionDefaults(region: RegionFile): RegionFile {
  if (region.transport === 'rest' || region.transport.ssh.hosts.length > 0) return region;
  return {
    ...region,
    transport: { ssh: { ...region.transport.ssh, hosts: region.hosts.allow } },
  };
}

function applyPoolDefaults(pool: PoolFile, file: ConfigFile): PoolFile {
  const from = pool.from ?? findOnlySource(file);
  return {
    ...pool,
    regions: pool.regions ?? Object.keys(file.proxmox),
    ...(from !== undefined && { from }),
    join: pool.join ?? findOnlyRecipe(file, from),
    names: { ...pool.names, prefix: pool.names.prefix ?? pool.name },
  };
}

function findOnlySource(file: ConfigFile): PoolFile['from'] {
  const templates = Object.keys(file.templates);
  // An image that a template is built from does not count as an image for pools.
  const built = new Set(Object.values(file.templates).map(({ image }) => image));
  const images = Object.keys(file.images).filter((name) => !built.has(name));
  const [image] = images;
  const [template] = templates;
  if (images.length + templates.length !== 1) return undefined;
  if (image !== undefined) return { image };
  return template === undefined ? undefined : { template, clone: 'full' };
}

function findOnlyRecipe(file: ConfigFile, from: PoolFile['from']): PoolFile['join'] {
  if (from !== undefined && 'netboot' in from) return 'none';
  const kinds = JOIN_KINDS.filter((kind) => file.join[kind] !== undefined);
  if (kinds.length > 1) return undefined;
  return kinds[0] ?? 'none';
}
