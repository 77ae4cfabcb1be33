// SPDX-License-Identifier: Apache-2.0
// Builds the merge patch for taints, cordoning and the zone, which change over a Node's life and are therefore not applied.
import type { Taint } from '../model/taints.ts';
import type { NodeChange, NodeRef } from '../ports/cluster.ts';
import type { NodeObject, TaintObject } from './objects.ts';

/** Undefined: the Node already has the wanted state. */
export function buildNodePatch(
  ref: NodeRef,
  node: NodeObject,
  change: NodeChange,
): object | undefined {
  const { taints = [], unschedulable = false } = node.spec ?? {};
  const taintPatch = buildTaintPatch(taints ?? [], change);
  const spec = { ...buildCordonPatch(unschedulable, change.unschedulable), ...taintPatch };
  const labels = buildLabelPatch(node.metadata.labels ?? {}, change.labels ?? {});
  if (Object.keys({ ...spec, ...labels }).length === 0) return undefined;
  // The list of taints is replaced as a whole: a concurrent change must be a conflict.
  const needsVersion = 'taints' in taintPatch;
  const { resourceVersion } = node.metadata;
  const metadata = { uid: ref.uid, ...(needsVersion && { resourceVersion }), ...labels };
  return { metadata, spec };
}

function buildLabelPatch(
  current: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): { readonly labels?: Readonly<Record<string, string>> } {
  const changed = Object.entries(wanted).filter(([key, value]) => current[key] !== value);
  return changed.length === 0 ? {} : { labels: Object.fromEntries(changed) };
}

function buildCordonPatch(current: boolean, wanted = current) {
  return wanted === current ? {} : { unschedulable: wanted || null };
}

/** Keeps unrelated taints unchanged, including fields that are not used here. */
function buildTaintPatch(
  current: readonly TaintObject[],
  { addTaints = [], removeTaintKeys = [] }: NodeChange,
): { readonly taints?: readonly TaintObject[] } {
  const missing = addTaints.filter((wanted) => !current.some((one) => isEqual(one, wanted)));
  const kept = current.filter(
    (one) =>
      !removeTaintKeys.includes(one.key) &&
      !missing.some((wanted) => hasSameKeyAndEffect(one, wanted)),
  );
  if (missing.length === 0 && kept.length === current.length) return {};
  return { taints: [...kept, ...missing.map(toTaintObject)] };
}

function hasSameKeyAndEffect(one: TaintObject, wanted: Taint): boolean {
  return one.key === wanted.key && one.effect === wanted.effect;
}

function isEqual(one: TaintObject, wanted: Taint): boolean {
  return hasSameKeyAndEffect(one, wanted) && (one.value ?? '') === wanted.value;
}

function toTaintObject({ key, value, effect }: Taint): TaintObject {
  return { key, ...(value !== '' && { value }), effect };
}
