// SPDX-License-Identifier: Apache-2.0
// Server-side apply: what is named is set and owned, what the same manager named before and does not name now goes
// away unless another owns it, and what another has set otherwise is a conflict.
import { ApiError } from './api-error.ts';
import { fieldsOf, type Path, withField, withoutField, wordsOf } from './field-paths.ts';
import { isSameWriter, type Ownership, type Writer } from './managed-fields.ts';
import type { Json, JsonObject } from './objects.ts';

export interface Applying {
  readonly current: JsonObject;
  readonly owners: readonly Ownership[];
  readonly config: JsonObject;
  readonly by: Writer;
  readonly force: boolean;
}

export interface Applied {
  readonly object: JsonObject;
  readonly owners: readonly Ownership[];
}

interface FieldConflict {
  readonly owner: Ownership;
  readonly path: Path;
}

export function apply({ current, owners, config, by, force }: Applying): Applied {
  const wanted = fieldsOf(config);
  const live = fieldsOf(current);
  const own = owners.find((one) => isSameWriter(one, by));
  const others = owners.filter((one) => one !== own);
  const conflicts = conflictsOf(others, wanted, live);
  if (conflicts.length > 0 && !force) throw refusal(conflicts);
  const isOthers = (path: Path) => others.some(({ paths }) => paths.has(path));
  const abandoned = [...(own?.paths ?? [])].filter((path) => !wanted.has(path) && !isOthers(path));
  let object = current;
  for (const path of abandoned) object = withoutField(object, path);
  for (const [path, value] of wanted) {
    if (!isSame(live.get(path), value)) object = withField(object, path, value);
  }
  const taken = new Set(conflicts.map(({ path }) => path));
  const paths = new Set(wanted.keys());
  const isUnchanged = own !== undefined && own.paths.symmetricDifference(paths).size === 0;
  const time = isUnchanged && object === current ? own.time : by.time;
  return {
    object,
    owners: [
      ...others.map((one) => ({ ...one, paths: one.paths.difference(taken) })),
      { ...by, paths, time },
    ],
  };
}

function isSame(one: Json | undefined, other: Json): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

// oxlint-disable-next-line max-params -- who owns, what is wanted, what is there
function conflictsOf(
  others: readonly Ownership[],
  wanted: ReadonlyMap<Path, Json>,
  live: ReadonlyMap<Path, Json>,
): readonly FieldConflict[] {
  return others
    .toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
    .flatMap((owner) =>
      [...wanted]
        .filter(([path, value]) => owner.paths.has(path) && !isSame(live.get(path), value))
        .map(([path]) => ({ owner, path }))
        .toSorted((one, other) => (one.path < other.path ? -1 : 1)),
    );
}

function nameOf({ manager, subresource, operation, apiVersion }: Writer): string {
  const through = subresource === '' ? '' : ` with subresource "${subresource}"`;
  return `"${manager}"${through}${operation === 'Update' ? ` using ${apiVersion}` : ''}`;
}

function refusal(conflicts: readonly FieldConflict[]): ApiError {
  const causes = conflicts.map(({ owner, path }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${nameOf(owner)}`,
    field: wordsOf(path),
  }));
  return new ApiError(409, 'Conflict', sentence(conflicts), causes);
}

function sentence(conflicts: readonly FieldConflict[]): string {
  const [first] = conflicts;
  if (first !== undefined && conflicts.length === 1) {
    const about = `${nameOf(first.owner)}: ${wordsOf(first.path)}`;
    return `Apply failed with 1 conflict: conflict with ${about}`;
  }
  const byOwner = Map.groupBy(conflicts, ({ owner }) => nameOf(owner));
  const lines = [...byOwner].flatMap(([owner, theirs]) => [
    `conflicts with ${owner}:`,
    ...theirs.map(({ path }) => `- ${wordsOf(path)}`),
  ]);
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`;
}
