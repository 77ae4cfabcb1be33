// SPDX-License-Identifier: Apache-2.0
import type { ClusterNode } from '../../ports/cluster.ts';
import type { MachineReconcile } from '../context/machine-reconcile.ts';
import { findNode } from './find-node.ts';

/** Undefined also while the cluster cannot be read. */
export function findOwnNode({ context, machine }: MachineReconcile): ClusterNode | undefined {
  const { clusterReading, records } = context;
  return clusterReading.kind === 'fresh'
    ? findNode(machine, clusterReading.view.nodes, records.machines)
    : undefined;
}
