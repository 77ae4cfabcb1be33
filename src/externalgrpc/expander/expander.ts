// SPDX-License-Identifier: Apache-2.0
// The autoscaler's expander plugin: of the suitable node groups, it prefers those with headroom for all requested nodes.
import type { Expander, Option } from '../gen/grpcplugin/expander_pb.js';
import type { Groups } from '../provider/groups.ts';
import type { Implementation } from '../server/services.ts';

export function createExpanderService(groups: () => Groups): Implementation<typeof Expander> {
  return {
    bestOptions: ({ options }) => ({
      options: bestOptions(options, groups()).map(({ nodeGroupId, nodeCount, debug }) => ({
        nodeGroupId,
        nodeCount,
        debug,
      })),
    }),
  };
}

/**
 * All options that fit completely; another expander chooses among them. If none fits, the options that lack the fewest
 * nodes. Never an empty list: the autoscaler would read that as "no group is suitable", and the hosts may have changed
 * since the last reading.
 */
export function bestOptions(
  options: readonly Option[],
  groups: Pick<Groups, 'headroom' | 'find'>,
): readonly Option[] {
  const rated = options.map((option) => ({ option, missing: countUnplaceable(option, groups) }));
  const fewest = rated.reduce((minimum, { missing }) => Math.min(minimum, missing), Infinity);
  return rated.filter(({ missing }) => missing === fewest).map(({ option }) => option);
}

/** How many of the option's nodes find no host. Zero for an unknown group. */
function countUnplaceable(
  { nodeGroupId, nodeCount }: Option,
  groups: Pick<Groups, 'headroom' | 'find'>,
): number {
  if (groups.find(nodeGroupId) === undefined) return 0;
  const headroom = groups.headroom(nodeGroupId);
  return headroom === undefined ? 0 : Math.max(0, nodeCount - headroom);
}
