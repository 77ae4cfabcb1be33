// SPDX-License-Identifier: Apache-2.0
// Server-side apply. Fields in the configuration are set and owned by the manager. Fields that the manager applied
// before and now omits are removed unless another manager owns them. A different value owned by another manager is a
// conflict.
import { ApiError } from './api-error.ts';
import { type FieldPath, formatPath, listFields, withField, withoutField } from './field-paths.ts';
import { type FieldOwnership, isSameWriter, type Writer } from './managed-fields.ts';
import type { Json, JsonObject } from './objects.ts';

export interface ApplyInput {
  readonly current: JsonObject;
  readonly owners: readonly FieldOwnership[];
  readonly config: JsonObject;
  readonly writer: Writer;
  readonly force: boolean;
}

export interface ApplyResult {
  readonly object: JsonObject;
  readonly owners: readonly FieldOwnership[];
}

interface FieldConflict {
  readonly owner: FieldOwnership;
  readonly path: FieldPath;
}

export function applyConfig({ current, owners, config, writer, force }: ApplyInput): ApplyResult {
  const appliedFields = listFields(config);
  const currentFields = listFields(current);
  const own = owners.find((one) => isSameWriter(one, writer));
  const others = owners.filter((one) => one !== own);
  const conflicts = findConflicts(others, appliedFields, currentFields);
  if (conflicts.length > 0 && !force) throw applyConflictError(conflicts);
  const isOwnedByOther = (path: FieldPath) => others.some(({ paths }) => paths.has(path));
  const omitted = [...(own?.paths ?? [])].filter(
    (path) => !appliedFields.has(path) && !isOwnedByOther(path),
  );
  let object = current;
  for (const path of omitted) object = withoutField(object, path);
  for (const [path, value] of appliedFields) {
    if (!isEqualJson(currentFields.get(path), value)) object = withField(object, path, value);
  }
  const takenOver = new Set(conflicts.map(({ path }) => path));
  const paths = new Set(appliedFields.keys());
  const isUnchanged = own !== undefined && own.paths.symmetricDifference(paths).size === 0;
  const time = isUnchanged && object === current ? own.time : writer.time;
  return {
    object,
    owners: [
      ...others.map((one) => ({ ...one, paths: one.paths.difference(takenOver) })),
      { ...writer, paths, time },
    ],
  };
}

function isEqualJson(one: Json | undefined, other: Json): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function findConflicts(
  others: readonly FieldOwnership[],
  appliedFields: ReadonlyMap<FieldPath, Json>,
  currentFields: ReadonlyMap<FieldPath, Json>,
): readonly FieldConflict[] {
  return others
    .toSorted((one, other) => (formatManager(one) < formatManager(other) ? -1 : 1))
    .flatMap((owner) =>
      [...appliedFields]
        .filter(
          ([path, value]) => owner.paths.has(path) && !isEqualJson(currentFields.get(path), value),
        )
        .map(([path]) => ({ owner, path }))
        .toSorted((one, other) => (one.path < other.path ? -1 : 1)),
    );
}

function formatManager({ manager, subresource, operation, apiVersion }: Writer): string {
  const suffix = subresource === '' ? '' : ` with subresource "${subresource}"`;
  return `"${manager}"${suffix}${operation === 'Update' ? ` using ${apiVersion}` : ''}`;
}

function applyConflictError(conflicts: readonly FieldConflict[]): ApiError {
  const causes = conflicts.map(({ owner, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${formatManager(owner)}`,
    field: formatPath(path),
  }));
  return new ApiError(409, 'Conflict', formatConflicts(conflicts), causes);
}

function formatConflicts(conflicts: readonly FieldConflict[]): string {
  const [first] = conflicts;
  if (first !== undefined && conflicts.length === 1) {
    const conflict = `${formatManager(first.owner)}: ${formatPath(first.path)}`;
    return `Apply failed with 1 conflict: conflict with ${conflict}`;
  }
  const byOwner = Map.groupBy(conflicts, ({ owner }) => formatManager(owner));
  const lines = [...byOwner].flatMap(([owner, theirs]) => [
    `conflicts with ${owner}:`,
    ...theirs.map(({ path }) => `- ${formatPath(path)}`),
  ]);
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`;
}
