// SPDX-License-Identifier: Apache-2.0
import type { PoolConfig } from '../config/types/index.ts';
import type { MachineSize } from '../model/machine.ts';

export interface ResourcePrices {
  readonly vcpuHour: number;
  readonly memoryGiBHour: number;
}

const GIB = 2 ** 30;

export function resourcePrice(
  { cpu, memoryBytes }: MachineSize,
  { vcpuHour, memoryGiBHour }: ResourcePrices,
): number {
  return cpu * vcpuHour + (memoryBytes / GIB) * memoryGiBHour;
}

/** `pricePerHour` is the price of the default size; other sizes cost in proportion. */
export function pricePerHour(
  pool: Pick<PoolConfig, 'pricePerHour' | 'size'>,
  size: MachineSize,
  pricing: ResourcePrices,
): number {
  const price = resourcePrice(size, pricing);
  if (pool.pricePerHour === undefined) return price;
  const base = resourcePrice(pool.size, pricing);
  return base === 0 ? pool.pricePerHour : (pool.pricePerHour * price) / base;
}
