// SPDX-License-Identifier: Apache-2.0
// Who set what on a Node, as Kubernetes keeps account of it: of labels and annotations, by us and by others.
import type { ClusterNode, ContestedKey, DeclaredKeys, NodeDeclaration } from '../cluster.ts';

type Texts = Readonly<Record<string, string>>;

/** Of one map of one Node. */
class Holders {
  readonly ours = new Set<string>();
  readonly theirs = new Set<string>();

  /** Whoever changes a value holds it alone. */
  changedByOthers(before: Texts, after: Texts): void {
    for (const key of Object.keys({ ...before, ...after })) {
      if (before[key] === after[key]) continue;
      this.ours.delete(key);
      if (after[key] === undefined) this.theirs.delete(key);
      else this.theirs.add(key);
    }
  }

  contested(current: Texts, wanted: Texts): readonly string[] {
    return Object.keys(wanted).filter(
      (key) => current[key] !== undefined && current[key] !== wanted[key] && this.theirs.has(key),
    );
  }

  declare(current: Texts, wanted: Texts): Texts {
    const abandoned = [...this.ours].filter((key) => wanted[key] === undefined);
    const gone = abandoned.filter((key) => !this.theirs.has(key));
    for (const key of abandoned) this.ours.delete(key);
    for (const key of Object.keys(wanted)) this.ours.add(key);
    const kept = Object.entries(current).filter(([key]) => !gone.includes(key));
    return { ...Object.fromEntries(kept), ...wanted };
  }
}

export class NodeHolders {
  readonly #labels = new Holders();
  readonly #annotations = new Holders();

  get declared(): DeclaredKeys {
    return { labels: [...this.#labels.ours], annotations: [...this.#annotations.ours] };
  }

  /** As the Node is then; undefined before: it is new. */
  changedByOthers(before: ClusterNode | undefined, after: ClusterNode): void {
    this.#labels.changedByOthers(before?.labels ?? {}, after.labels);
    this.#annotations.changedByOthers(before?.annotations ?? {}, after.annotations);
  }

  declare(
    node: ClusterNode,
    { labels, annotations = {} }: NodeDeclaration,
  ): Pick<ClusterNode, 'labels' | 'annotations'> & { readonly contested: readonly ContestedKey[] } {
    const [label, annotation] = [this.#labels, this.#annotations];
    const left = {
      labels: label.contested(node.labels, labels),
      annotations: annotation.contested(node.annotations, annotations),
    };
    return {
      labels: label.declare(node.labels, without(labels, left.labels)),
      annotations: annotation.declare(node.annotations, without(annotations, left.annotations)),
      contested: [
        ...left.labels.map((key) => ({ kind: 'label', key, holder: 'others' }) as const),
        ...left.annotations.map((key) => ({ kind: 'annotation', key, holder: 'others' }) as const),
      ],
    };
  }
}

function without(texts: Texts, keys: readonly string[]): Texts {
  return Object.fromEntries(Object.entries(texts).filter(([key]) => !keys.includes(key)));
}
