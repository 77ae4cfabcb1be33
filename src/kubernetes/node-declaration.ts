// SPDX-License-Identifier: Apache-2.0
// What is ours on a Node, as server-side apply takes it. It is never forced: a Node belongs to many, and whoever set
// a field to another value meant it.
import type { ContestedKey, NodeDeclaration, NodeRef } from '../ports/cluster.ts';
import { Conflict } from '../ports/errors.ts';
import { heldFields } from './managed-fields.ts';
import type { NodeObject } from './objects.ts';
import type { ApiStatus } from './status.ts';

type Texts = Readonly<Record<string, string>>;

const PATHS = { label: '.metadata.labels.', annotation: '.metadata.annotations.' } as const;

/** Undefined: it is as declared already. */
export function declarationBody(
  ref: NodeRef,
  node: NodeObject,
  declaration: NodeDeclaration,
): object | undefined {
  const { labels, annotations = {}, providerId = '' } = declaration;
  const held = heldFields(node.metadata);
  const current = node.spec?.providerID ?? '';
  demandUnset(ref, current, providerId);
  const isSame =
    isHeld(held.labels, labels, node.metadata.labels) &&
    isHeld(held.annotations, annotations, node.metadata.annotations) &&
    (providerId === '' || providerId === current);
  if (isSame) return undefined;
  // What was applied once and is left out would be taken away, and Kubernetes refuses that here.
  const providerID = held.providerId ? current : providerId;
  return {
    apiVersion: 'v1',
    kind: 'Node',
    // An apply makes what is not there; with a uid it is refused instead.
    metadata: { name: ref.name, uid: ref.uid, ...filled({ labels, annotations }) },
    ...(providerID !== '' && { spec: { providerID } }),
  };
}

/** Without empty maps: they would be owned as such. */
function filled(maps: Readonly<Record<string, Texts>>): Readonly<Record<string, Texts>> {
  return Object.fromEntries(Object.entries(maps).filter(([, map]) => Object.keys(map).length > 0));
}

function demandUnset({ name }: NodeRef, current: string, wanted: string): void {
  if (wanted === '' || current === '' || wanted === current) return;
  throw new Conflict('PROVIDER_ID_SET', `node ${name} has the provider id '${current}'`, {
    facts: { providerId: current },
  });
}

/** Exactly these keys are held, and they have these values. */
function isHeld(held: readonly string[], wanted: Texts, current: Texts | null = {}): boolean {
  const entries = Object.entries(wanted);
  return (
    held.length === entries.length &&
    entries.every(([key, value]) => held.includes(key) && current?.[key] === value)
  );
}

export function without(
  declaration: NodeDeclaration,
  contested: readonly ContestedKey[],
): NodeDeclaration {
  const left = (kind: ContestedKey['kind'], texts: Texts = {}) =>
    Object.fromEntries(
      Object.entries(texts).filter(
        ([key]) => !contested.some((one) => one.kind === kind && one.key === key),
      ),
    );
  return {
    ...declaration,
    labels: left('label', declaration.labels),
    annotations: left('annotation', declaration.annotations),
  };
}

/** The keys that the API server says others hold with other values. */
export function conflictsIn({ causes }: ApiStatus): readonly ContestedKey[] {
  return causes
    .filter(({ reason }) => reason === 'FieldManagerConflict')
    .flatMap(({ field, message }) => {
      const kind = field.startsWith(PATHS.label) ? 'label' : 'annotation';
      if (!field.startsWith(PATHS[kind])) return [];
      return [{ kind, key: field.slice(PATHS[kind].length), holder: holderIn(message) }] as const;
    });
}

/** `conflict with "kubectl-label" using v1`. */
function holderIn(message: string): string {
  return /"([^"]*)"/.exec(message)?.[1] ?? message;
}
