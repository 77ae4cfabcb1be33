// SPDX-License-Identifier: Apache-2.0
// Defaults that depend on other keys: a pool uses all regions, the only image, the only join recipe. Where
// there is no only one, the key stays open and the checks say so.
import type { ConfigFile, PoolFile, RegionFile } from '../schema/index.ts';
import { JOIN_KINDS } from '../schema/join.ts';

export function completeFile(file: ConfigFile): ConfigFile {
  return {
    ...file,
    proxmox: Object.fromEntries(
      Object.entries(file.proxmox).map(([name, region]) => [name, completeRegion(region)]),
    ),
    pools: file.pools.map((pool) => completePool(pool, file)),
  };
}

function completeRegion(region: RegionFile): RegionFile {
  if (region.transport === 'rest' || region.transport.ssh.hosts.length > 0) return region;
  return {
    ...region,
    transport: { ssh: { ...region.transport.ssh, hosts: region.hosts.allow } },
  };
}

function completePool(pool: PoolFile, file: ConfigFile): PoolFile {
  const from = pool.from ?? onlySource(file);
  return {
    ...pool,
    regions: pool.regions ?? Object.keys(file.proxmox),
    ...(from !== undefined && { from }),
    join: pool.join ?? onlyRecipe(file, from),
    names: { ...pool.names, prefix: pool.names.prefix ?? pool.name },
  };
}

function onlySource(file: ConfigFile): PoolFile['from'] {
  const templates = Object.keys(file.templates);
  // An image that a template is built from is not, by being there, meant for pools.
  const built = new Set(Object.values(file.templates).map(({ image }) => image));
  const images = Object.keys(file.images).filter((name) => !built.has(name));
  const [image] = images;
  const [template] = templates;
  if (images.length + templates.length !== 1) return undefined;
  if (image !== undefined) return { image };
  return template === undefined ? undefined : { template, clone: 'full' };
}

function onlyRecipe(file: ConfigFile, from: PoolFile['from']): PoolFile['join'] {
  if (from !== undefined && 'netboot' in from) return 'none';
  const kinds = JOIN_KINDS.filter((kind) => file.join[kind] !== undefined);
  if (kinds.length > 1) return undefined;
  return kinds[0] ?? 'none';
}
