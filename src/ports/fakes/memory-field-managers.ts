// SPDX-License-Identifier: Apache-2.0
// Tracks which labels and annotations of a Node we own and which others own, like managedFields in Kubernetes.
import type { ClusterNode, DeclaredKeys, FieldConflict, NodeDeclaration } from '../cluster.ts';

type StringMap = Readonly<Record<string, string>>;

/** Owners of the keys of one map of one Node. */
class KeyOwners {
  readonly ownedByUs = new Set<string>();
  readonly ownedByOthers = new Set<string>();

  /** A manager that changes a value becomes its only owner. */
  changedByOthers(before: StringMap, after: StringMap): void {
    for (const key of Object.keys({ ...before, ...after })) {
      if (before[key] === after[key]) continue;
      this.ownedByUs.delete(key);
      if (after[key] === undefined) this.ownedByOthers.delete(key);
      else this.ownedByOthers.add(key);
    }
  }

  findConflicts(current: StringMap, wanted: StringMap): readonly string[] {
    return Object.keys(wanted).filter(
      (key) =>
        current[key] !== undefined && current[key] !== wanted[key] && this.ownedByOthers.has(key),
    );
  }

  declare(current: StringMap, wanted: StringMap): StringMap {
    const undeclared = [...this.ownedByUs].filter((key) => wanted[key] === undefined);
    const removed = undeclared.filter((key) => !this.ownedByOthers.has(key));
    for (const key of undeclared) this.ownedByUs.delete(key);
    for (const key of Object.keys(wanted)) this.ownedByUs.add(key);
    const kept = Object.entries(current).filter(([key]) => !removed.includes(key));
    return { ...Object.fromEntries(kept), ...wanted };
  }
}

export class FieldManagers {
  readonly #labels = new KeyOwners();
  readonly #annotations = new KeyOwners();

  get declared(): DeclaredKeys {
    return { labels: [...this.#labels.ownedByUs], annotations: [...this.#annotations.ownedByUs] };
  }

  /** `before` is undefined for a new Node. */
  changedByOthers(before: ClusterNode | undefined, after: ClusterNode): void {
    this.#labels.changedByOthers(before?.labels ?? {}, after.labels);
    this.#annotations.changedByOthers(before?.annotations ?? {}, after.annotations);
  }

  declare(
    node: ClusterNode,
    { labels, annotations = {} }: NodeDeclaration,
  ): Pick<ClusterNode, 'labels' | 'annotations'> & {
    readonly conflicts: readonly FieldConflict[];
  } {
    const [label, annotation] = [this.#labels, this.#annotations];
    const conflicts = {
      labels: label.findConflicts(node.labels, labels),
      annotations: annotation.findConflicts(node.annotations, annotations),
    };
    return {
      labels: label.declare(node.labels, without(labels, conflicts.labels)),
      annotations: annotation.declare(
        node.annotations,
        without(annotations, conflicts.annotations),
      ),
      conflicts: [
        ...conflicts.labels.map((key) => ({ kind: 'label', key, manager: 'others' }) as const),
        ...conflicts.annotations.map(
          (key) => ({ kind: 'annotation', key, manager: 'others' }) as const,
        ),
      ],
    };
  }
}

function without(texts: StringMap, keys: readonly string[]): StringMap {
  return Object.fromEntries(Object.entries(texts).filter(([key]) => !keys.includes(key)));
}
