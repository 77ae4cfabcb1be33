// SPDX-License-Identifier: Apache-2.0
// Who owns which field: the account that `metadata.managedFields` shows, and how changes move it.
import { type Path, pathsIn, treeOf } from './field-paths.ts';
import { isObject, type JsonObject, objectIn, type SimObject, textIn } from './objects.ts';

/** Who writes, and by which door. */
export interface Writer {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  /** Empty: the object itself. */
  readonly subresource: string;
  readonly apiVersion: string;
  /** RFC 3339, whole seconds. */
  readonly time: string;
}

export interface Ownership extends Writer {
  readonly paths: ReadonlySet<Path>;
}

export function ownershipsOf(object: SimObject | undefined): readonly Ownership[] {
  const entries = object?.metadata['managedFields'];
  return (Array.isArray(entries) ? entries : []).filter(isObject).map((entry) => ({
    manager: textIn(entry, 'manager'),
    operation: textIn(entry, 'operation') === 'Apply' ? 'Apply' : 'Update',
    subresource: textIn(entry, 'subresource'),
    apiVersion: textIn(entry, 'apiVersion'),
    time: textIn(entry, 'time'),
    paths: pathsIn(objectIn(entry, 'fieldsV1')),
  }));
}

/** Applied ones first, then by age, then by name. */
export function entriesOf(ownerships: readonly Ownership[]): readonly JsonObject[] {
  const order = ({ operation, time, manager, subresource }: Ownership) =>
    [operation, time, manager, subresource].join('\n');
  return ownerships
    .filter(({ paths }) => paths.size > 0)
    .toSorted((one, other) => (order(one) < order(other) ? -1 : 1))
    .map(({ manager, operation, apiVersion, time, paths, subresource }) => ({
      manager,
      operation,
      apiVersion,
      time,
      fieldsType: 'FieldsV1',
      fieldsV1: treeOf(paths),
      ...(subresource !== '' && { subresource }),
    }));
}

export function isSameWriter(one: Writer, other: Writer): boolean {
  return (
    one.manager === other.manager &&
    one.operation === other.operation &&
    one.subresource === other.subresource
  );
}

export interface Moved {
  readonly by: Writer;
  /** Fields that have another value now, or are new. */
  readonly changed: ReadonlySet<Path>;
  readonly removed: ReadonlySet<Path>;
}

/** Whoever changes a field by a write owns it alone from then on. */
export function afterUpdate(
  before: readonly Ownership[],
  { by, changed, removed }: Moved,
): readonly Ownership[] {
  if (changed.size + removed.size === 0) return before;
  const own = before.find((one) => isSameWriter(one, by));
  const others = before
    .filter((one) => one !== own)
    .map((one) => ({ ...one, paths: one.paths.difference(changed).difference(removed) }));
  const paths = (own?.paths ?? new Set()).union(changed).difference(removed);
  return [...others, { ...by, paths, time: changed.size > 0 ? by.time : (own?.time ?? by.time) }];
}
