// SPDX-License-Identifier: Apache-2.0
// Which size a machine gets: the pool's usual one, or one of its others by name or by numbers.
import type { PoolConfig } from '../config/index.ts';
import type { MachineSize } from '../model/machine.ts';
import { parseQuantity, wholeValue } from '../model/quantity.ts';
import { Bug, InvalidRequest } from '../ports/errors.ts';

type PoolSize = PoolConfig['size'];
type Asked = Partial<MachineSize>;

/** The first of a list, the smallest of a span. */
export function defaultSize({ size }: Pick<PoolConfig, 'size'>): MachineSize {
  const first = size.kind === 'span' ? size.min : size.sizes[0];
  if (first === undefined) throw new Bug('BUG', 'a pool without a size passed the checks');
  return plain(first);
}

/** `small`, or `cpu=4,memory=8Gi[,disk=40Gi]`; one that the pool does not have is refused with those it has. */
export function chosenSize(pool: Pick<PoolConfig, 'name' | 'size'>, text: string): MachineSize {
  const { size } = pool;
  const found = text.includes('=') ? byNumbers(size, askedFor(text)) : byName(size, text);
  if (found !== undefined) return found;
  throw new InvalidRequest('USAGE', `pool ${pool.name} has no size ${text}; it has ${told(size)}`);
}

function byName(size: PoolSize, name: string): MachineSize | undefined {
  const found = size.kind === 'choice' ? size.sizes.find((one) => one.name === name) : undefined;
  return found === undefined ? undefined : plain(found);
}

function byNumbers(size: PoolSize, asked: Asked): MachineSize | undefined {
  if (size.kind === 'span') return inSpan(size, asked);
  const found = size.sizes.find((one) =>
    Object.values(KEYS).every((key) => asked[key] === undefined || asked[key] === one[key]),
  );
  return found === undefined ? undefined : plain(found);
}

function inSpan(size: Extract<PoolSize, { kind: 'span' }>, asked: Asked): MachineSize | undefined {
  const { min, max, stepCpu, stepMemoryBytes } = size;
  const wanted = { ...plain(min), ...asked };
  const fits =
    isStep(wanted.cpu, { min: min.cpu, max: max.cpu, step: stepCpu }) &&
    isStep(wanted.memoryBytes, {
      min: min.memoryBytes,
      max: max.memoryBytes,
      step: stepMemoryBytes,
    }) &&
    wanted.diskBytes >= min.diskBytes &&
    wanted.diskBytes <= Math.max(min.diskBytes, max.diskBytes);
  return fits ? wanted : undefined;
}

interface Steps {
  readonly min: number;
  readonly max: number;
  readonly step: number;
}

function isStep(value: number, { min, max, step }: Steps): boolean {
  return value >= min && value <= max && (step === 0 || (value - min) % step === 0);
}

const KEYS: Readonly<Record<string, keyof MachineSize>> = {
  cpu: 'cpu',
  memory: 'memoryBytes',
  disk: 'diskBytes',
};

function askedFor(text: string): Asked {
  return Object.fromEntries(text.split(',').map((part) => amountOf(part)));
}

function amountOf(part: string): readonly [keyof MachineSize, number] {
  const [name = '', value = ''] = part.trim().split('=');
  const key = KEYS[name];
  if (key === undefined) throw notASize(part);
  if (key === 'cpu') {
    if (!/^\d{1,6}$/.test(value)) throw notASize(part);
    return [key, Number(value)];
  }
  const quantity = parseQuantity(value);
  if (!quantity.ok) throw new InvalidRequest('USAGE', `--size ${part}: ${quantity.problem}`);
  return [key, Number(wholeValue(quantity.value))];
}

function notASize(part: string): InvalidRequest {
  return new InvalidRequest('USAGE', `--size ${part} is none of cpu=N, memory=SIZE, disk=SIZE`);
}

function plain({ cpu, memoryBytes, diskBytes }: MachineSize): MachineSize {
  return { cpu, memoryBytes, diskBytes };
}

function told(size: PoolSize): string {
  if (size.kind === 'span') return `everything from ${words(size.min)} to ${words(size.max)}`;
  return size.sizes.map((one) => one.name ?? words(one)).join(', ');
}

function words({ cpu, memoryBytes }: MachineSize): string {
  return `cpu=${cpu},memory=${Math.round(memoryBytes / 2 ** 20)}Mi`;
}
