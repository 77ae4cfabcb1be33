// SPDX-License-Identifier: Apache-2.0
import type { Clock } from '../clock.ts';
import type { DriverLock, EndedDriver } from '../driver-lock.ts';

/** What the processes of one machine share. */
export interface LockFile {
  owner?: MemoryDriverLock | undefined;
  note?: { readonly holder: string; readonly unsettledSince: number | undefined };
}

/** The lock as one process has it. */
export class MemoryDriverLock implements DriverLock {
  readonly #file: LockFile;
  readonly #clock: Pick<Clock, 'monotonic'>;

  constructor(file: LockFile, clock: Pick<Clock, 'monotonic'>) {
    this.#file = file;
    this.#clock = clock;
  }

  tryLock(): boolean {
    this.#file.owner ??= this;
    return this.#isOwner;
  }

  holder(): string | undefined {
    return this.#isOwner ? this.#file.note?.holder : undefined;
  }

  endedDriver(): EndedDriver | undefined {
    const { note } = this.#file;
    if (!this.#isOwner || note === undefined) return undefined;
    const since = note.unsettledSince ?? Number.NEGATIVE_INFINITY;
    return {
      holder: note.holder,
      unsettledMs: (maxRequestMs) => Math.max(0, since + maxRequestMs - this.#clock.monotonic()),
    };
  }

  claim(holder: string): void {
    if (this.#isOwner) this.#file.note = { holder, unsettledSince: undefined };
  }

  recordUnsettled(ageMs: number | undefined): void {
    const { note } = this.#file;
    if (!this.#isOwner || note === undefined) return;
    const unsettledSince = ageMs === undefined ? undefined : this.#clock.monotonic() - ageMs;
    this.#file.note = { ...note, unsettledSince };
  }

  unlock(): void {
    if (this.#isOwner) this.#file.owner = undefined;
  }

  get #isOwner(): boolean {
    return this.#file.owner === this;
  }
}
