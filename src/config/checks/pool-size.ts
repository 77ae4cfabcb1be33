// SPDX-License-Identifier: Apache-2.0
// Sizes of a pool: ranges are ascending, the balloon fits, a clone is not smaller than its template.
import type { ConfigPath } from '../config-path.ts';
import { errorAt, type Finding } from '../issues/finding.ts';
import type { ConfigFile, PoolFile, SizeFile } from '../schema/index.ts';
import { type AmountText, parseBytes } from '../values/amount.ts';

export function checkPoolSize(
  path: ConfigPath,
  pool: PoolFile,
  file: ConfigFile,
): readonly Finding[] {
  return [
    ...checkSizeRange([...path, 'size'], pool.size),
    ...checkBalloon(path, pool, file),
    ...checkDisk(path, pool, file),
  ];
}

function checkSizeRange(path: ConfigPath, size: PoolFile['size']): readonly Finding[] {
  if (typeof size !== 'object' || !('min' in size)) return [];
  const { min, max } = size;
  const amounts = [
    { key: 'cpu', isUp: min.cpu <= max.cpu },
    { key: 'memory', isUp: bytesOrZero(min.memory) <= bytesOrZero(max.memory) },
    { key: 'disk', isUp: bytesOrZero(min.disk) <= bytesOrZero(max.disk) },
  ];
  return amounts.flatMap(({ key, isUp }) =>
    isUp ? [] : [errorAt([...path, 'min', key], 'is more than the value in max')],
  );
}

function checkBalloon(path: ConfigPath, pool: PoolFile, file: ConfigFile): readonly Finding[] {
  const balloon = bytesOrZero(pool.balloon);
  const smallest = Math.min(...findSizes(pool, file).map(({ memory }) => bytesOrZero(memory)));
  return balloon > smallest
    ? [errorAt([...path, 'balloon'], 'is more than the memory of the smallest machine')]
    : [];
}

function checkDisk(path: ConfigPath, pool: PoolFile, file: ConfigFile): readonly Finding[] {
  if (pool.from === undefined || !('template' in pool.from)) return [];
  const template = file.templates[pool.from.template];
  const smallest = Math.min(...findSizes(pool, file).map(({ disk }) => bytesOrZero(disk)));
  // The disk size is only known for a template that pvescaler builds.
  return template?.image !== undefined && smallest < bytesOrZero(template.disk)
    ? [errorAt([...path, 'size'], 'has a smaller disk than the template; disks cannot shrink')]
    : [];
}

function findSizes(pool: PoolFile, file: ConfigFile): readonly SizeFile[] {
  if (typeof pool.size === 'object' && 'min' in pool.size) return [pool.size.min];
  return [pool.size].flat().flatMap((size) => {
    const known = typeof size === 'string' ? file.sizes[size] : size;
    return known === undefined ? [] : [known];
  });
}

function bytesOrZero(amount: AmountText): number {
  const parsed = parseBytes(amount);
  return parsed.ok ? parsed.value : 0;
}
