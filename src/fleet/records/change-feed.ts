// SPDX-License-Identifier: Apache-2.0

/** How far the store has been read, and how that orders our own writes against the records being read. */
export class ChangeFeed {
  #revision: number | undefined;
  #removedDuringRead: Map<string, number> | undefined;

  /** Undefined before the first read. */
  get revision(): number | undefined {
    return this.#revision;
  }

  /** Records that this process removes from here on may still be in the result of the read. */
  beginRead(): void {
    this.#removedDuringRead = new Map();
  }

  completeRead(revision: number): void {
    this.#revision = Math.max(this.#revision ?? 0, revision);
    this.#removedDuringRead = undefined;
  }

  /** False when a completed read already contains this revision or a later one. */
  isNewer(revision: number): boolean {
    return this.#revision !== undefined && revision > this.#revision;
  }

  wrote(revision: number): void {
    if (this.#revision !== undefined && revision === this.#revision + 1) this.#revision = revision;
  }

  removed(key: string, revision: number): void {
    this.#removedDuringRead?.set(key, revision);
  }

  /** Whether this process removed the record while it was being read. */
  isRemoved(key: string, revision: number): boolean {
    const removedAt = this.#removedDuringRead?.get(key);
    return removedAt !== undefined && revision <= removedAt;
  }
}
