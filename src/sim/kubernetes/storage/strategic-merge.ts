// SPDX-License-Identifier: Apache-2.0
// Strategic merge patch: lists of objects are merged by a key of their items, lists of texts marked as sets are united,
// and `$patch`, `$retainKeys`, `$deleteFromPrimitiveList` and `$setElementOrder` direct the merge.
import { isObject, type Json, type JsonObject, textField } from './objects.ts';

/** The merge key of a list, by the name of its field. Lists that are not named here are replaced. */
const MERGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  containers: ['name'],
  initContainers: ['name'],
  ephemeralContainers: ['name'],
  env: ['name'],
  volumes: ['name'],
  volumeMounts: ['mountPath'],
  volumeDevices: ['devicePath'],
  ports: ['containerPort', 'port'],
  conditions: ['type'],
  addresses: ['type'],
  ownerReferences: ['uid'],
  imagePullSecrets: ['name'],
  secrets: ['name'],
  hostAliases: ['ip'],
  schedulingGates: ['name'],
  resourceClaims: ['name'],
  topologySpreadConstraints: ['topologyKey'],
  podIPs: ['ip'],
  hostIPs: ['ip'],
};
/** Lists of texts that are united instead of replaced. */
const SETS = new Set(['finalizers', 'podCIDRs']);

export function applyStrategicMergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  if (patch['$patch'] === 'replace') return withoutDirectives(patch);
  if (patch['$patch'] === 'delete') return {};
  const merged = new Map(Object.entries(retainKeys(isObject(target) ? target : {}, patch)));
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$deleteFromPrimitiveList/')) {
      const field = key.slice(key.indexOf('/') + 1);
      merged.set(field, removeItems(merged.get(field), value));
    } else if (key.startsWith('$')) continue;
    else if (value === null) merged.delete(key);
    else if (value !== undefined) merged.set(key, mergeField(key, merged.get(key), value));
  }
  return orderLists(Object.fromEntries(merged), patch);
}

function withoutDirectives(patch: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(patch).filter(([key]) => !key.startsWith('$')));
}

/** `$retainKeys` removes all other keys of the object. */
function retainKeys(target: JsonObject, patch: JsonObject): JsonObject {
  const retained = patch['$retainKeys'];
  if (!Array.isArray(retained)) return target;
  return Object.fromEntries(Object.entries(target).filter(([key]) => retained.includes(key)));
}

function removeItems(target: Json | undefined, removed: Json | undefined): Json {
  const items = Array.isArray(target) ? target : [];
  return items.filter((item) => !(Array.isArray(removed) && removed.includes(item)));
}

function mergeField(field: string, target: Json | undefined, patch: Json): Json {
  if (!Array.isArray(patch)) return applyStrategicMergePatch(target, patch);
  const current = Array.isArray(target) ? target : [];
  if (SETS.has(field)) return [...new Set([...current, ...patch])];
  const keys = MERGE_KEYS[field];
  if (keys === undefined || patch.some((item) => !isObject(item))) return patch;
  return mergeList(current.filter(isObject), patch.filter(isObject), keys);
}

function mergeList(
  target: readonly JsonObject[],
  patch: readonly JsonObject[],
  keys: readonly string[],
): Json {
  const isReplaced = patch.some((item) => item['$patch'] === 'replace');
  const merged: JsonObject[] = isReplaced ? [] : [...target];
  for (const item of patch) {
    if (item['$patch'] === 'replace') continue;
    const key = keys.find((one) => item[one] !== undefined);
    const at = key === undefined ? -1 : merged.findIndex((one) => one[key] === item[key]);
    if (item['$patch'] === 'delete') {
      if (at >= 0) merged.splice(at, 1);
      continue;
    }
    const next = applyStrategicMergePatch(merged[at], item);
    if (!isObject(next)) continue;
    if (at < 0) merged.push(next);
    else merged[at] = next;
  }
  return merged;
}

/** `$setElementOrder/FIELD` lists the items, as texts or as objects with their merge key, in their new order. */
function orderLists(object: JsonObject, patch: JsonObject): JsonObject {
  let ordered = object;
  for (const [directive, order] of Object.entries(patch)) {
    if (!directive.startsWith('$setElementOrder/') || !Array.isArray(order)) continue;
    const field = directive.slice(directive.indexOf('/') + 1);
    const items = ordered[field];
    if (!Array.isArray(items)) continue;
    const position = (item: Json) => {
      const at = order.findIndex((one) => isSameItem(field, one, item));
      return at < 0 ? order.length : at;
    };
    ordered = {
      ...ordered,
      [field]: items.toSorted((one, other) => position(one) - position(other)),
    };
  }
  return ordered;
}

function isSameItem(field: string, one: Json, other: Json): boolean {
  if (!isObject(one) || !isObject(other)) return one === other;
  const keys = MERGE_KEYS[field] ?? [];
  return keys.some((key) =>
    textField(one, key) !== '' || typeof one[key] === 'number' ? one[key] === other[key] : false,
  );
}
