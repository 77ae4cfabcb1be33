// SPDX-License-Identifier: Apache-2.0

/** How far the store has been read, and what that means for answers that come later than they were made. */
export class ChangeFeed {
  #seen: number | undefined;
  #removedMeanwhile: Map<string, number> | undefined;

  /** Undefined before the first reading. */
  get revision(): number | undefined {
    return this.#seen;
  }

  /** A reading begins: what we remove from here on it may still have. */
  beginRead(): void {
    this.#removedMeanwhile = new Map();
  }

  completeRead(revision: number): void {
    this.#seen = Math.max(this.#seen ?? 0, revision);
    this.#removedMeanwhile = undefined;
  }

  /** Whether a write of ours is news; whoever has read further has it, or what came after it. */
  isNewer(revision: number): boolean {
    return this.#seen !== undefined && revision > this.#seen;
  }

  wrote(revision: number): void {
    if (this.#seen !== undefined && revision === this.#seen + 1) this.#seen = revision;
  }

  removed(key: string, revision: number): void {
    this.#removedMeanwhile?.set(key, revision);
  }

  /** Whether a record that was read is one that we have removed meanwhile. */
  isRemoved(key: string, revision: number): boolean {
    const removedAt = this.#removedMeanwhile?.get(key);
    return removedAt !== undefined && revision <= removedAt;
  }
}
