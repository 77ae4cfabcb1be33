// SPDX-License-Identifier: Apache-2.0
// Node groups in mode externalgrpc: all machines of a group are alike, and each size of a list is a group of its own.
import { nodeGroupId } from '../../model/names.ts';
import type { ConfigPath } from '../config-path.ts';
import { errorAt, type Finding } from '../issues/finding.ts';
import type { ConfigFile, PoolFile, SizeFile } from '../schema/index.ts';
import { quoteKey, quoteValue } from '../secrets/detect-secret.ts';
import { parseBytes } from '../values/amount.ts';

const INSTANCE_TYPE_LABEL = 'node.kubernetes.io/instance-type';

export function checkNodeGroups(
  path: ConfigPath,
  pool: PoolFile,
  file: ConfigFile,
): readonly Finding[] {
  const { name, size, labels } = pool;
  if (file.mode !== 'externalgrpc') return [];
  if (typeof size === 'object' && 'min' in size) {
    const problem = `a range cannot be used in mode externalgrpc, because all machines of a node group must be alike; list sizes that 'sizes' defines, such as [small, large]: each becomes the node group ${name}-SIZE`;
    return [errorAt([...path, 'size'], problem)];
  }
  if (!Array.isArray(size)) return [];
  return [
    ...size.flatMap((_, index) => {
      const problem = listedSizeProblem({ pool, sizes: size, index }, file);
      return problem === undefined ? [] : [errorAt([...path, 'size', index], problem)];
    }),
    ...(Object.hasOwn(labels, INSTANCE_TYPE_LABEL)
      ? [
          errorAt(
            [...path, 'labels', INSTANCE_TYPE_LABEL],
            'tells the sizes of the list apart, so it is set by pvescaler; remove it',
          ),
        ]
      : []),
  ];
}

interface ListedSize {
  readonly pool: PoolFile;
  readonly sizes: readonly (string | SizeFile)[];
  readonly index: number;
}

function listedSizeProblem(
  { pool, sizes, index }: ListedSize,
  file: ConfigFile,
): string | undefined {
  const name = sizes[index];
  if (typeof name !== 'string') {
    return `needs a name in mode externalgrpc, because each size of a list is a node group of its own, ${pool.name}-SIZE; define it in 'sizes' and write its name here`;
  }
  const before = sizes.slice(0, index).filter((each) => typeof each === 'string');
  if (before.includes(name)) return `size ${quoteValue(name)} appears twice in the list`;
  const same = before.find((other) => isEqual(file.sizes[other], file.sizes[name]));
  if (same !== undefined) {
    return `size ${quoteValue(name)} is equal to ${quoteValue(same)}; machines of two node groups must differ in cpu, memory or disk`;
  }
  const id = nodeGroupId(pool.name, name);
  return otherGroupIds(pool, file).includes(id)
    ? `its node group ${quoteKey(id)} has the name of another pool or node group; rename the size or the pool`
    : undefined;
}

function otherGroupIds(pool: PoolFile, file: ConfigFile): readonly string[] {
  return file.pools
    .filter((other) => other !== pool)
    .flatMap(({ name, size }) => {
      const sizes = Array.isArray(size) ? size.filter((each) => typeof each === 'string') : [];
      return [name, ...sizes.map((each) => nodeGroupId(name, each))];
    });
}

function isEqual(left: SizeFile | undefined, right: SizeFile | undefined): boolean {
  if (left === undefined || right === undefined) return false;
  const bytes = (amount: SizeFile['memory']) => {
    const parsed = parseBytes(amount);
    return parsed.ok ? parsed.value : amount;
  };
  return (
    left.cpu === right.cpu &&
    bytes(left.memory) === bytes(right.memory) &&
    bytes(left.disk) === bytes(right.disk)
  );
}
