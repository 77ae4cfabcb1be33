// SPDX-License-Identifier: Apache-2.0
// The node groups of a pool, as the Cluster Autoscaler sees it: all nodes of a group are alike, so a pool with a list of
// sizes has one group per size.
import type { PoolConfig } from '../config/types/index.ts';
import type { MachineSize } from '../model/machine.ts';

type GroupedPool = Pick<PoolConfig, 'name' | 'size' | 'nodeGroups'>;

export interface NodeGroup<Pool extends GroupedPool = PoolConfig> {
  readonly id: string;
  /** The pool, with the size of this group as its size. */
  readonly pool: Pool;
  /** Whether machines of the pool's minimum get this size. */
  readonly isDefault: boolean;
  /** Every size belongs to exactly one group of the pool. */
  readonly contains: (size: MachineSize) => boolean;
}

export function nodeGroupsOf<Pool extends GroupedPool>(pool: Pool): readonly NodeGroup<Pool>[] {
  const { nodeGroups } = pool;
  if (nodeGroups.length === 0) {
    return [{ id: pool.name, pool, isDefault: true, contains: () => true }];
  }
  return nodeGroups.map((group, index) => ({
    id: group.id,
    pool: { ...pool, size: group.size, instanceType: group.instanceType },
    isDefault: index === 0,
    contains: (size) => nearest(nodeGroups, size) === group,
  }));
}

/** A machine keeps its size when the config changes; it stays in the group that is most like it. */
function nearest(
  groups: PoolConfig['nodeGroups'],
  size: MachineSize,
): PoolConfig['nodeGroups'][number] | undefined {
  let found: { readonly group: PoolConfig['nodeGroups'][number]; readonly by: number } | undefined;
  for (const group of groups) {
    const by = difference(group.size, size);
    if (found === undefined || by < found.by) found = { group, by };
  }
  return found?.group;
}

function difference(left: MachineSize, right: MachineSize): number {
  const relative = (a: number, b: number) => Math.abs(a - b) / Math.max(a, b, 1);
  return (
    relative(left.cpu, right.cpu) +
    relative(left.memoryBytes, right.memoryBytes) +
    relative(left.diskBytes, right.diskBytes)
  );
}
