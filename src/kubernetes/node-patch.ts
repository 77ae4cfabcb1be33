// SPDX-License-Identifier: Apache-2.0
// What is done to a Node rather than declared of it: taints come and go, it is cordoned and opened again.
import type { Taint } from '../model/taints.ts';
import type { NodeChange, NodeRef } from '../ports/cluster.ts';
import type { NodeObject, TaintObject } from './objects.ts';

/** Undefined: it is as wanted already. */
export function nodePatch(ref: NodeRef, node: NodeObject, change: NodeChange): object | undefined {
  const { taints = [], unschedulable = false } = node.spec ?? {};
  const changed = changedTaints(taints ?? [], change);
  const spec = { ...switchPatch(unschedulable, change.unschedulable), ...changed };
  if (Object.keys(spec).length === 0) return undefined;
  const isBased = 'taints' in changed;
  const { resourceVersion } = node.metadata;
  return { metadata: { uid: ref.uid, ...(isBased && { resourceVersion }) }, spec };
}

function switchPatch(current: boolean, wanted = current) {
  return wanted === current ? {} : { unschedulable: wanted || null };
}

/** Others' taints are passed on as they are, with fields that mean nothing here. */
function changedTaints(
  current: readonly TaintObject[],
  { addTaints = [], removeTaintKeys = [] }: NodeChange,
): { readonly taints?: readonly TaintObject[] } {
  const missing = addTaints.filter((wanted) => !current.some((one) => isEqual(one, wanted)));
  const kept = current.filter(
    (one) => !removeTaintKeys.includes(one.key) && !missing.some((wanted) => isRival(one, wanted)),
  );
  if (missing.length === 0 && kept.length === current.length) return {};
  return { taints: [...kept, ...missing.map(asObject)] };
}

function isRival(one: TaintObject, wanted: Taint): boolean {
  return one.key === wanted.key && one.effect === wanted.effect;
}

function isEqual(one: TaintObject, wanted: Taint): boolean {
  return isRival(one, wanted) && (one.value ?? '') === wanted.value;
}

function asObject({ key, value, effect }: Taint): TaintObject {
  return { key, ...(value !== '' && { value }), effect };
}
