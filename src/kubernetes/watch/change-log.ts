// SPDX-License-Identifier: Apache-2.0
// Which Nodes and Pods changed in the newest revisions of the view.

export type LoggedKind = 'node' | 'pod';

interface LogEntry {
  readonly revision: number;
  readonly kind: LoggedKind;
  /** `namespace/name`. */
  readonly key: string;
}

/** An observer that is further behind compares the whole view, which costs little more than so many single changes. */
const MAX_ENTRIES = 10_000;

export class ChangeLog {
  #entries: LogEntry[] = [];
  /** Every later change is in the log. */
  #completeAfter = 0;

  add(revision: number, kind: LoggedKind, keys: readonly string[]): void {
    if (keys.length > MAX_ENTRIES) {
      this.#entries = [];
      this.#completeAfter = revision;
      return;
    }
    for (const key of keys) this.#entries.push({ revision, kind, key });
    // Trimmed by half, so that trimming costs little per change.
    if (this.#entries.length > 2 * MAX_ENTRIES) this.#trim();
  }

  /** Keys of what changed after the revision, oldest first; undefined when the log does not reach back that far. */
  since(revision: number): Readonly<Record<LoggedKind, ReadonlySet<string>>> | undefined {
    if (revision < this.#completeAfter) return undefined;
    const changed = { node: new Set<string>(), pod: new Set<string>() };
    const first = this.#entries.findLastIndex((entry) => entry.revision <= revision) + 1;
    for (const { kind, key } of this.#entries.slice(first)) changed[kind].add(key);
    return changed;
  }

  #trim(): void {
    const dropped = this.#entries.splice(0, this.#entries.length - MAX_ENTRIES);
    this.#completeAfter = dropped.at(-1)?.revision ?? this.#completeAfter;
    // Entries of one revision are kept or dropped together.
    this.#entries = this.#entries.filter((entry) => entry.revision > this.#completeAfter);
  }
}
