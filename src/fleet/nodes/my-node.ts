// SPDX-License-Identifier: Apache-2.0
import type { ClusterNode } from '../../ports/cluster.ts';
import type { Job } from '../lifecycle/job.ts';
import { nodeOf } from './match.ts';

/** Undefined also while the cluster cannot be read. */
export function myNode({ turn, machine }: Job): ClusterNode | undefined {
  const { sight, books } = turn;
  return sight.kind === 'fresh' ? nodeOf(machine, sight.view.nodes, books.machines) : undefined;
}
