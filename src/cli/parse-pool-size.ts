// SPDX-License-Identifier: Apache-2.0
// The value of --size: one of the pool's sizes, by name or by amounts.
import type { PoolConfig } from '../config/index.ts';
import type { MachineSize } from '../model/machine.ts';
import { parseQuantity, wholeValue } from '../model/quantity.ts';
import { InvalidRequest } from '../ports/errors.ts';

type PoolSizes = PoolConfig['sizes'];
type RequestedAmounts = Partial<MachineSize>;

/** `small`, or `cpu=4,memory=8Gi[,disk=40Gi]`. InvalidRequest lists the pool's sizes when none matches. */
export function parsePoolSize(pool: Pick<PoolConfig, 'name' | 'sizes'>, text: string): MachineSize {
  const { sizes } = pool;
  const found = text.includes('=')
    ? findByAmounts(sizes, parseAmounts(text))
    : findByName(sizes, text);
  if (found !== undefined) return found;
  throw new InvalidRequest(
    'USAGE',
    `pool ${pool.name} has no size ${text}; it has ${formatSizes(sizes)}`,
  );
}

function findByName(sizes: PoolSizes, name: string): MachineSize | undefined {
  const found =
    sizes.kind === 'choice' ? sizes.sizes.find((each) => each.name === name) : undefined;
  return found === undefined ? undefined : withoutName(found);
}

function findByAmounts(sizes: PoolSizes, requested: RequestedAmounts): MachineSize | undefined {
  if (sizes.kind === 'span') return sizeInSpan(sizes, requested);
  const found = sizes.sizes.find((each) =>
    Object.values(AMOUNT_KEYS).every(
      (key) => requested[key] === undefined || requested[key] === each[key],
    ),
  );
  return found === undefined ? undefined : withoutName(found);
}

function sizeInSpan(
  span: Extract<PoolSizes, { kind: 'span' }>,
  requested: RequestedAmounts,
): MachineSize | undefined {
  const { min, max, stepCpu, stepMemoryBytes } = span;
  const result = { ...withoutName(min), ...requested };
  const fits =
    isOnStep(result.cpu, { min: min.cpu, max: max.cpu, step: stepCpu }) &&
    isOnStep(result.memoryBytes, {
      min: min.memoryBytes,
      max: max.memoryBytes,
      step: stepMemoryBytes,
    }) &&
    result.diskBytes >= min.diskBytes &&
    result.diskBytes <= Math.max(min.diskBytes, max.diskBytes);
  return fits ? result : undefined;
}

interface SteppedRange {
  readonly min: number;
  readonly max: number;
  readonly step: number;
}

function isOnStep(value: number, { min, max, step }: SteppedRange): boolean {
  return value >= min && value <= max && (step === 0 || (value - min) % step === 0);
}

const AMOUNT_KEYS: Readonly<Record<string, keyof MachineSize>> = {
  cpu: 'cpu',
  memory: 'memoryBytes',
  disk: 'diskBytes',
};

function parseAmounts(text: string): RequestedAmounts {
  return Object.fromEntries(text.split(',').map((part) => parseAmount(part)));
}

function parseAmount(part: string): readonly [keyof MachineSize, number] {
  const [name = '', value = ''] = part.trim().split('=');
  const key = AMOUNT_KEYS[name];
  if (key === undefined) throw invalidAmount(part);
  if (key === 'cpu') {
    if (!/^\d{1,6}$/.test(value)) throw invalidAmount(part);
    return [key, Number(value)];
  }
  const quantity = parseQuantity(value);
  if (!quantity.ok) throw new InvalidRequest('USAGE', `--size ${part}: ${quantity.problem}`);
  return [key, Number(wholeValue(quantity.value))];
}

function invalidAmount(part: string): InvalidRequest {
  return new InvalidRequest('USAGE', `--size ${part} is none of cpu=N, memory=SIZE, disk=SIZE`);
}

function withoutName({ cpu, memoryBytes, diskBytes }: MachineSize): MachineSize {
  return { cpu, memoryBytes, diskBytes };
}

function formatSizes(sizes: PoolSizes): string {
  if (sizes.kind === 'span') return `all from ${formatSize(sizes.min)} to ${formatSize(sizes.max)}`;
  return sizes.sizes.map((each) => each.name ?? formatSize(each)).join(', ');
}

function formatSize({ cpu, memoryBytes }: MachineSize): string {
  return `cpu=${cpu},memory=${Math.round(memoryBytes / 2 ** 20)}Mi`;
}
