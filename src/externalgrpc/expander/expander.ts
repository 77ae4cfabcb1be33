// SPDX-License-Identifier: Apache-2.0
// The autoscaler's expander plugin: of the node groups that would help, those whose hosts have room for as many.
import type { Expander, Option } from '../gen/grpcplugin/expander_pb.js';
import type { Groups } from '../provider/groups.ts';
import type { Implementation } from '../server/services.ts';

export function expander(groups: Groups): Implementation<typeof Expander> {
  return {
    bestOptions: ({ options }) => ({
      options: bestOptions(options, groups).map(({ nodeGroupId, nodeCount, debug }) => ({
        nodeGroupId,
        nodeCount,
        debug,
      })),
    }),
  };
}

/**
 * All that fit whole, for another expander to choose among; else those that get furthest. Never nothing: the
 * autoscaler would read it as "no group will do", and it may know better than our last look at the hosts.
 */
export function bestOptions(
  options: readonly Option[],
  groups: Pick<Groups, 'roomLeft' | 'find'>,
): readonly Option[] {
  const judged = options.map((option) => ({ option, missing: missingFor(option, groups) }));
  const least = judged.reduce((sofar, { missing }) => Math.min(sofar, missing), Infinity);
  return judged.filter(({ missing }) => missing === least).map(({ option }) => option);
}

/** How many of its nodes would find no host. One that we do not know is not judged. */
function missingFor(
  { nodeGroupId, nodeCount }: Option,
  groups: Pick<Groups, 'roomLeft' | 'find'>,
): number {
  if (groups.find(nodeGroupId) === undefined) return 0;
  const room = groups.roomLeft(nodeGroupId);
  return room === undefined ? 0 : Math.max(0, nodeCount - room);
}
