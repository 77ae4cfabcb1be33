// SPDX-License-Identifier: Apache-2.0
// A pool for tests of other folders: built from the schema, so that a new key appears in it by itself.
import { buildConfig, type PoolConfig } from '../../effective/config.ts';
import { configSchema } from '../../schema/index.ts';

const SAMPLE = parsePoolConfig({
  size: { cpu: 2, memory: '2Gi', disk: '20Gi' },
  limits: { max: 10 },
});

/** A pool as it is written in the config. There are two named sizes. */
export function parsePoolConfig(pool: Readonly<Record<string, unknown>>): PoolConfig {
  const file = configSchema.parse({
    apiVersion: 'pvescaler.dev/v1alpha1',
    proxmox: {},
    sizes: {
      small: { cpu: 2, memory: '4Gi', disk: '40Gi' },
      large: { cpu: 8, memory: '16Gi', disk: '80Gi' },
    },
    pools: [{ name: 'workers', from: { netboot: {} }, join: 'none', ...pool }],
  });
  const folders = { home: '/', base: '/' };
  const [parsed] = buildConfig(file, folders).pools;
  if (parsed === undefined) throw new Error('the sample config has no pool');
  return parsed;
}

/** All defaults of the schema; 10 machines of 2 CPUs at most. */
export function aPoolConfig(overrides: Partial<PoolConfig> = {}): PoolConfig {
  return { ...SAMPLE, ...overrides };
}
