// SPDX-License-Identifier: Apache-2.0
// Builds the server-side apply request for the fields of a Node that we declare. It is never forced: a field that
// another manager set to a different value keeps that value.
import type { FieldConflict, NodeDeclaration, NodeRef } from '../ports/cluster.ts';
import { Conflict } from '../ports/errors.ts';
import { readManagedFields } from './managed-fields.ts';
import type { NodeObject } from './objects.ts';
import type { ApiStatus } from './status.ts';

type StringMap = Readonly<Record<string, string>>;

const FIELD_PREFIXES = {
  label: '.metadata.labels.',
  annotation: '.metadata.annotations.',
} as const;

/** Undefined: the Node already matches the declaration. */
export function buildApplyBody(
  ref: NodeRef,
  node: NodeObject,
  declaration: NodeDeclaration,
): object | undefined {
  const { labels, annotations = {}, providerId = '' } = declaration;
  const managed = readManagedFields(node.metadata);
  const current = node.spec?.providerID ?? '';
  assertProviderIdUnset(ref, current, providerId);
  const isSame =
    hasExactly(managed.labels, labels, node.metadata.labels) &&
    hasExactly(managed.annotations, annotations, node.metadata.annotations) &&
    (providerId === '' || providerId === current);
  if (isSame) return undefined;
  // Leaving out a field that we applied removes it, and Kubernetes refuses to remove the provider id.
  const providerID = managed.providerId ? current : providerId;
  return {
    apiVersion: 'v1',
    kind: 'Node',
    // An apply creates a missing Node; the uid makes the API server refuse that.
    metadata: { name: ref.name, uid: ref.uid, ...withoutEmpty({ labels, annotations }) },
    ...(providerID !== '' && { spec: { providerID } }),
  };
}

/** Apply would make us the owner of an empty map. */
function withoutEmpty(
  maps: Readonly<Record<string, StringMap>>,
): Readonly<Record<string, StringMap>> {
  return Object.fromEntries(Object.entries(maps).filter(([, map]) => Object.keys(map).length > 0));
}

function assertProviderIdUnset({ name }: NodeRef, current: string, wanted: string): void {
  if (wanted === '' || current === '' || wanted === current) return;
  throw new Conflict(
    'PROVIDER_ID_SET',
    `node ${name} already has the provider id '${current}', not '${wanted}'`,
    {
      facts: { providerId: current },
    },
  );
}

/** We own exactly the wanted keys, and they have the wanted values. */
function hasExactly(
  owned: readonly string[],
  wanted: StringMap,
  current: StringMap | null = {},
): boolean {
  const entries = Object.entries(wanted);
  return (
    owned.length === entries.length &&
    entries.every(([key, value]) => owned.includes(key) && current?.[key] === value)
  );
}

export function withoutConflicts(
  declaration: NodeDeclaration,
  conflicts: readonly FieldConflict[],
): NodeDeclaration {
  const remaining = (kind: FieldConflict['kind'], texts: StringMap = {}) =>
    Object.fromEntries(
      Object.entries(texts).filter(
        ([key]) => !conflicts.some((one) => one.kind === kind && one.key === key),
      ),
    );
  return {
    ...declaration,
    labels: remaining('label', declaration.labels),
    annotations: remaining('annotation', declaration.annotations),
  };
}

/** The keys that other field managers own with different values. */
export function readConflicts({ causes }: ApiStatus): readonly FieldConflict[] {
  return causes
    .filter(({ reason }) => reason === 'FieldManagerConflict')
    .flatMap(({ field, message }) => {
      const kind = field.startsWith(FIELD_PREFIXES.label) ? 'label' : 'annotation';
      if (!field.startsWith(FIELD_PREFIXES[kind])) return [];
      return [
        { kind, key: field.slice(FIELD_PREFIXES[kind].length), manager: readManager(message) },
      ] as const;
    });
}

/** Parses `conflict with "kubectl-label" using v1`. */
function readManager(message: string): string {
  return /"([^"]*)"/.exec(message)?.[1] ?? message;
}
