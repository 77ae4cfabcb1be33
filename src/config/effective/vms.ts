// SPDX-License-Identifier: Apache-2.0
import type { ConfigFile } from '../schema/index.ts';
import { poolSchema } from '../schema/pool.ts';
import { vmsSchema } from '../schema/vms.ts';
import { buildPool, buildSource } from './pool.ts';

/** Sizes of the VM creation plan, for configs that do not define their own. */
const DEFAULT_SIZES = {
  small: { cpu: 1, memory: '2Gi', disk: '20Gi' },
  medium: { cpu: 2, memory: '4Gi', disk: '40Gi' },
  large: { cpu: 4, memory: '8Gi', disk: '80Gi' },
} as const;

/**
 * What hand-made VMs use where a request says nothing, in the form of a pool: it has no name, no limits and no join, and
 * a request replaces its source and its size.
 */
export function buildVms(file: ConfigFile) {
  const { from, namePrefix, interfaces, ...rest } = file.vms;
  const defaults = poolSchema.parse({
    name: 'vms',
    from: { netboot: {} },
    join: 'none',
    size: DEFAULT_SIZES.small,
    names: { prefix: namePrefix, suffix: 'ordinal' },
  });
  const pool = buildPool(
    {
      ...defaults,
      ...rest,
      network: { ...defaults.network, interfaces },
      regions: Object.keys(file.proxmox),
      onStopped: 'ignore',
    },
    file,
  );
  return {
    ...pool,
    defaultSource: from === undefined ? undefined : buildSource(from),
    isConfigured: file.pools.length === 0 || differsFromDefaults(file.vms),
  };
}

/** The source does not count: the only one of the config is a default, for pools as well. */
function differsFromDefaults(vms: ConfigFile['vms']): boolean {
  const defaults = vmsSchema.parse({});
  return JSON.stringify({ ...vms, from: undefined }) !== JSON.stringify(defaults);
}

/** Sizes by name: those of the config, and the plan's where the config has none of that name. */
export function vmSizeFiles({ sizes }: ConfigFile): ConfigFile['sizes'] {
  return { ...DEFAULT_SIZES, ...sizes };
}
