// SPDX-License-Identifier: Apache-2.0
// An input as JSON, and back: the same plan can be computed again from a file. Canonical: equal inputs give equal text,
// whatever the order of keys, so that a digest of the text identifies the input.

import { type ClusterObjects, Snapshot } from '../scheduling/index.ts';
import type { ScalingInput } from './input.ts';

export const STORED_INPUT_VERSION = 1;

type StoredCluster = Omit<ClusterObjects, 'namespaces' | 'storage'> & {
  readonly namespaces: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly storage?: Omit<NonNullable<ClusterObjects['storage']>, 'capacityDrivers'> & {
    readonly capacityDrivers?: readonly string[];
  };
};

export interface StoredInput extends Omit<ScalingInput, 'snapshot'> {
  readonly version: typeof STORED_INPUT_VERSION;
  readonly cluster: StoredCluster;
  /** Of everything else, in the file. */
  readonly digest?: string;
}

/** `objects`: what the snapshot of the input was made from. */
export function storeInput(input: ScalingInput, objects: ClusterObjects): StoredInput {
  const { snapshot: _, ...rest } = input;
  const { namespaces, storage, ...cluster } = objects;
  const { capacityDrivers, ...volumes } = storage ?? {};
  return {
    version: STORED_INPUT_VERSION,
    ...rest,
    cluster: {
      ...cluster,
      namespaces: Object.fromEntries(namespaces ?? []),
      storage: {
        ...volumes,
        ...(capacityDrivers !== undefined && { capacityDrivers: [...capacityDrivers].toSorted() }),
      },
    },
  };
}

export function restoreInput(stored: StoredInput): ScalingInput {
  const { cluster, version: _, ...rest } = stored;
  const { namespaces, storage = {}, ...objects } = cluster;
  const { capacityDrivers, ...volumes } = storage;
  const snapshot = Snapshot.of({
    ...objects,
    namespaces: new Map(Object.entries(namespaces)),
    storage: {
      ...volumes,
      ...(capacityDrivers !== undefined && { capacityDrivers: new Set(capacityDrivers) }),
    },
  });
  return { ...rest, snapshot };
}

/** Parses what `canonicalJson(storeInput(…))` wrote. Undefined if the text is no stored input of this version. */
export function parseStoredInput(text: string): StoredInput | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text, revive);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const isStored =
    'version' in value && value.version === STORED_INPUT_VERSION && 'cluster' in value;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by storeInput of this version
  return isStored ? (value as StoredInput) : undefined;
}

/** JSON with sorted keys, without absent values. Sizes of volumes are integers of any length; limits per CSI driver are a map. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, one: unknown) => {
    if (typeof one === 'bigint') return { [BIGINT]: String(one) };
    if (typeof one !== 'object' || one === null || Array.isArray(one)) return one;
    if (one instanceof Map) return { [MAP]: sortEntries([...one]) };
    if (one instanceof Set) return { [SET]: [...one].map(String).toSorted() };
    return Object.fromEntries(sortEntries(Object.entries(one)));
  });
}

/** No label, annotation or resource begins with `$`. */
const BIGINT = '$bigint';
const MAP = '$map';
const SET = '$set';

function sortEntries<T extends readonly [unknown, unknown]>(entries: readonly T[]): readonly T[] {
  return entries.toSorted(([left], [right]) => (String(left) < String(right) ? -1 : 1));
}

function revive(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (BIGINT in value) return BigInt(String(value[BIGINT]));
  if (MAP in value && Array.isArray(value[MAP])) return new Map(value[MAP]);
  if (SET in value && Array.isArray(value[SET])) return new Set(value[SET]);
  return value;
}
