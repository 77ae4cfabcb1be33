// SPDX-License-Identifier: Apache-2.0
import type { CollectionName, RecordKinds } from '../../ports/record-validators.ts';
import type { StoreChanges, Versioned } from '../../ports/store.ts';

type Records = { readonly [N in CollectionName]: Map<string, Versioned<RecordKinds[N]>> };

interface Removal {
  readonly collection: CollectionName;
  readonly key: string;
  readonly revision: number;
}

/** How many removals are stored at least. */
const REMOVALS_KEPT = 1_000;

/** The records as this process sees them. Revisions count the changes that it has seen. */
export class RecordCopy {
  readonly #records: Records = {
    intents: new Map(),
    machines: new Map(),
    drains: new Map(),
    pools: new Map(),
  };
  #removals: Removal[] = [];
  /** Every later removal is stored. */
  #completeAfter = 0;
  #revision = 0;

  get revision(): number {
    return this.#revision;
  }

  get<N extends CollectionName>(collection: N, key: string): Versioned<RecordKinds[N]> | undefined {
    return this.#records[collection].get(key);
  }

  list<N extends CollectionName>(collection: N): readonly Versioned<RecordKinds[N]>[] {
    return [...this.#records[collection].values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** A new revision, even of an equal value. */
  set<N extends CollectionName>(collection: N, key: string, value: RecordKinds[N]): void {
    this.#revision += 1;
    const record = Object.freeze({ key, value, revision: this.#revision });
    this.#records[collection].set(key, record);
  }

  delete(collection: CollectionName, key: string): void {
    if (!this.#records[collection].delete(key)) return;
    this.#revision += 1;
    this.#removals.push({ collection, key, revision: this.#revision });
    // Trimmed by half, so that trimming costs little per removal.
    if (this.#removals.length <= 2 * REMOVALS_KEPT) return;
    const dropped = this.#removals.splice(0, this.#removals.length - REMOVALS_KEPT);
    this.#completeAfter = dropped.at(-1)?.revision ?? this.#completeAfter;
  }

  changes(since: number | undefined): StoreChanges | undefined {
    if (since !== undefined && since < this.#completeAfter) return undefined;
    const of = <N extends CollectionName>(collection: N): readonly Versioned<RecordKinds[N]>[] =>
      [...this.#records[collection].values()].filter(({ revision }) => revision > (since ?? 0));
    const removed = this.#removals
      .filter(({ revision }) => since !== undefined && revision > since)
      .map(({ collection, key }) => ({ collection, key }));
    return {
      revision: this.#revision,
      intents: of('intents'),
      machines: of('machines'),
      drains: of('drains'),
      pools: of('pools'),
      removed,
    };
  }
}
