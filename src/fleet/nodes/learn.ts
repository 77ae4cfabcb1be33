// SPDX-License-Identifier: Apache-2.0
// Learns from joined Nodes how much of a machine's size pods can use, by size; corrects the template of the next ones.
import type { Machine } from '../../model/machine.ts';
import type { LearnedAllocatable } from '../../model/pool.ts';
import { parseResources } from '../../model/resources.ts';
import { sizeKey } from '../../pools/index.ts';
import type { ClusterNode } from '../../ports/cluster.ts';
import type { ReconcileContext } from '../context/reconcile-context.ts';

export async function learnAllocatable(
  context: ReconcileContext,
  machine: Machine,
  node: ClusterNode,
): Promise<void> {
  const parsed = parseResources(node.allocatable);
  if (!parsed.ok || parsed.value.memoryBytes === 0) return;
  const { cpuMilli, memoryBytes, ephemeralStorageBytes, pods } = parsed.value;
  const facts = { cpuMilli, memoryBytes, ephemeralStorageBytes, pods };
  const key = sizeKey(machine.size);
  await context.records.changePool(machine.pool, (state) => {
    const known = state.allocatable[key];
    if (known !== undefined && isSame(known, facts)) return undefined;
    const learned = { ...facts, learnedAt: context.now };
    return { ...state, allocatable: { ...state.allocatable, [key]: learned } };
  });
}

function isSame(known: LearnedAllocatable, facts: Omit<LearnedAllocatable, 'learnedAt'>): boolean {
  return (
    known.cpuMilli === facts.cpuMilli &&
    known.memoryBytes === facts.memoryBytes &&
    known.ephemeralStorageBytes === facts.ephemeralStorageBytes &&
    known.pods === facts.pods
  );
}
