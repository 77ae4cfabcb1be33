// SPDX-License-Identifier: Apache-2.0
// A pool for tests of other folders: built from the schema, so that a new key appears in it by itself.
import { buildConfig, type PoolConfig } from '../../effective/config.ts';
import { configSchema } from '../../schema/index.ts';

const SAMPLE = buildSample();

function buildSample(): PoolConfig {
  const file = configSchema.parse({
    apiVersion: 'pvescaler.dev/v1alpha1',
    proxmox: {},
    pools: [
      {
        name: 'workers',
        from: { netboot: {} },
        join: 'none',
        size: { cpu: 2, memory: '2Gi', disk: '20Gi' },
        limits: { max: 10 },
      },
    ],
  });
  const folders = { home: '/', base: '/' };
  const [pool] = buildConfig(file, folders).pools;
  if (pool === undefined) throw new Error('the sample config has no pool');
  return pool;
}

/** All defaults of the schema; 10 machines of 2 CPUs at most. */
export function aPoolConfig(overrides: Partial<PoolConfig> = {}): PoolConfig {
  return { ...SAMPLE, ...overrides };
}
