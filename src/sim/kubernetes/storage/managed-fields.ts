// SPDX-License-Identifier: Apache-2.0
// Field ownership as recorded in `metadata.managedFields`, and how writes change it.
import { type FieldPath, formatFieldsV1, parseFieldsV1 } from './field-paths.ts';
import { isObject, type JsonObject, objectField, type SimObject, textField } from './objects.ts';

/** Identifies the writer of a request: manager, operation and subresource. */
export interface Writer {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  /** Empty for the object itself. */
  readonly subresource: string;
  readonly apiVersion: string;
  /** RFC 3339, whole seconds. */
  readonly time: string;
}

export interface FieldOwnership extends Writer {
  readonly paths: ReadonlySet<FieldPath>;
}

export function readOwnerships(object: SimObject | undefined): readonly FieldOwnership[] {
  const entries = object?.metadata['managedFields'];
  return (Array.isArray(entries) ? entries : []).filter(isObject).map((entry) => ({
    manager: textField(entry, 'manager'),
    operation: textField(entry, 'operation') === 'Apply' ? 'Apply' : 'Update',
    subresource: textField(entry, 'subresource'),
    apiVersion: textField(entry, 'apiVersion'),
    time: textField(entry, 'time'),
    paths: parseFieldsV1(objectField(entry, 'fieldsV1')),
  }));
}

/** Ordered as in a real API server: `Apply` entries first, then by time, then by manager. */
export function formatManagedFields(ownerships: readonly FieldOwnership[]): readonly JsonObject[] {
  const order = ({ operation, time, manager, subresource }: FieldOwnership) =>
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
      fieldsV1: formatFieldsV1(paths),
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

export interface FieldUpdate {
  readonly writer: Writer;
  /** Fields that are new or have a new value. */
  readonly changed: ReadonlySet<FieldPath>;
  readonly removed: ReadonlySet<FieldPath>;
}

/** The writer becomes the only owner of the fields that it changes. */
export function updateOwnerships(
  before: readonly FieldOwnership[],
  { writer, changed, removed }: FieldUpdate,
): readonly FieldOwnership[] {
  if (changed.size + removed.size === 0) return before;
  const own = before.find((one) => isSameWriter(one, writer));
  const others = before
    .filter((one) => one !== own)
    .map((one) => ({ ...one, paths: one.paths.difference(changed).difference(removed) }));
  const paths = (own?.paths ?? new Set()).union(changed).difference(removed);
  return [
    ...others,
    { ...writer, paths, time: changed.size > 0 ? writer.time : (own?.time ?? writer.time) },
  ];
}
