// SPDX-License-Identifier: Apache-2.0
// The gRPC server's settings, from the config. main.ts checks them against the server's types.
import type { Config, PoolConfig } from '../config/index.ts';
import { defaultSize } from './pool-size.ts';

export function externalGrpcSettings(config: Config) {
  return {
    groups: config.pools.map((pool) => groupOf(pool)),
    pricing: config.pricing,
    gpu: config.gpu,
  };
}

function groupOf(pool: PoolConfig) {
  const { name, regions, architecture, labels, groupLabel, taints, gpu, capacity } = pool;
  return {
    name,
    regions,
    min: pool.limits.min,
    max: maxMachines(pool),
    size: defaultSize(pool),
    zone: zoneOf(pool),
    architecture,
    labels,
    groupLabel,
    taints,
    instanceType: pool.size.kind === 'choice' ? pool.size.sizes[0]?.name : undefined,
    gpu,
    extendedResources: pool.extendedResources,
    capacity,
    pricePerHour: pool.pricePerHour,
    options: pool.clusterAutoscaler,
  };
}

/** The smallest of its limits; 0 = unlimited. */
function maxMachines(pool: PoolConfig): number {
  const { max, cpu, memoryBytes } = pool.limits;
  const size = defaultSize(pool);
  return Math.min(
    max,
    cpu === 0 ? max : Math.floor(cpu / size.cpu),
    memoryBytes === 0 ? max : Math.floor(memoryBytes / size.memoryBytes),
  );
}

/** The zone of future nodes is known only when the pool may use a single host. */
function zoneOf({ placement, labels }: PoolConfig): string | undefined {
  const { allow } = placement.hosts;
  return labels['topology.kubernetes.io/zone'] ?? (allow.length === 1 ? allow[0] : undefined);
}
