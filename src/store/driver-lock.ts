// SPDX-License-Identifier: Apache-2.0
// The lock of the driver: a write lock of SQLite on a file of its own, and a note about its holder in a second file. SQLite
// uses fcntl locks, which the kernel keeps per file: they work across containers and pid namespaces, are not inherited,
// and end with the process. The note need not survive a power failure: it counts only within the same boot.
import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../ports/clock.ts';
import type { DriverLock, EndedDriver } from '../ports/driver-lock.ts';

/** Magic numbers of statfs(2) for file systems that one machine uses: only there a free lock proves that its holder ended. */
const LOCAL_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0xef53, // ext2, ext3, ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0x2fc12fc1, // zfs
  0xca451a4e, // bcachefs
  0xf2f52010, // f2fs
  0x01021994, // tmpfs
  0x794c7630, // overlayfs
]);

const BOOT_ID_FILE = '/proc/sys/kernel/random/boot_id';
/** Notes are padded to this length, so that each write replaces the whole one. */
const NOTE_BYTES = 1_024;

interface Note {
  readonly bootId: string;
  readonly holder: string;
  /** When the last request without a known result began, on the monotonic clock, which all processes share. */
  readonly unsettledSince: number | undefined;
  /** The same for the driver before. */
  readonly inheritedSince: number | undefined;
}

/** Undefined where a free lock proves nothing. */
export async function openDriverLock(
  databasePath: string,
  clock: Pick<Clock, 'monotonic'>,
): Promise<DriverLock | undefined> {
  const path = resolve(databasePath);
  try {
    const { type } = await statfs(dirname(path));
    if (!LOCAL_FILE_SYSTEMS.has(type)) return undefined;
    return new FileDriverLock(path, readFileSync(BOOT_ID_FILE, 'utf8').trim(), clock);
  } catch {
    return undefined;
  }
}

class FileDriverLock implements DriverLock {
  readonly #lockPath: string;
  readonly #notePath: string;
  readonly #bootId: string;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #locked: DatabaseSync | undefined;
  #noteFile: number | undefined;
  /** Of the last holder; of this process once it has claimed the lock. */
  #note: Note | undefined;

  constructor(path: string, bootId: string, clock: Pick<Clock, 'monotonic'>) {
    this.#lockPath = `${path}-driver.lock`;
    this.#notePath = `${path}-driver`;
    this.#bootId = bootId;
    this.#clock = clock;
  }

  tryLock(): boolean {
    if (this.#locked !== undefined) return true;
    let database: DatabaseSync | undefined;
    try {
      database = new DatabaseSync(this.#lockPath, { timeout: 0 });
      database.exec('BEGIN EXCLUSIVE');
      this.#noteFile = openSync(this.#notePath, constants.O_RDWR | constants.O_CREAT, 0o600);
    } catch {
      // Another process has it, or the folder cannot be written: the leases decide.
      database?.close();
      return false;
    }
    this.#locked = database;
    this.#note = this.#readNote();
    return true;
  }

  endedDriver(): EndedDriver | undefined {
    const note = this.#note;
    // After a restart of the machine the note may be older than the last request.
    if (this.#locked === undefined || note?.bootId !== this.#bootId) return undefined;
    const since = latest(note) ?? Number.NEGATIVE_INFINITY;
    return {
      holder: note.holder,
      unsettledMs: (maxRequestMs) => Math.max(0, since + maxRequestMs - this.#clock.monotonic()),
    };
  }

  holder(): string | undefined {
    return this.#note?.holder;
  }

  claim(holder: string): void {
    if (this.#locked === undefined) return;
    const before = this.#note?.bootId === this.#bootId ? this.#note : undefined;
    const inheritedSince = latest(before);
    this.#write({ bootId: this.#bootId, holder, unsettledSince: undefined, inheritedSince });
  }

  recordUnsettled(ageMs: number | undefined): void {
    if (this.#locked === undefined || this.#note === undefined) return;
    const unsettledSince = ageMs === undefined ? undefined : this.#clock.monotonic() - ageMs;
    this.#write({ ...this.#note, unsettledSince });
  }

  unlock(): void {
    const database = this.#locked;
    this.#locked = undefined;
    this.#note = undefined;
    if (this.#noteFile !== undefined) closeSync(this.#noteFile);
    this.#noteFile = undefined;
    database?.close();
  }

  #write(note: Note): void {
    this.#note = note;
    if (this.#noteFile === undefined) return;
    writeSync(this.#noteFile, JSON.stringify(note).padEnd(NOTE_BYTES), 0, 'utf8');
  }

  #readNote(): Note | undefined {
    try {
      return parseNote(JSON.parse(readFileSync(this.#notePath, 'utf8')));
    } catch {
      return undefined;
    }
  }
}

function latest(note: Note | undefined): number | undefined {
  const { unsettledSince, inheritedSince } = note ?? {};
  if (unsettledSince === undefined || inheritedSince === undefined) {
    return unsettledSince ?? inheritedSince;
  }
  return Math.max(unsettledSince, inheritedSince);
}

function parseNote(value: unknown): Note | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const fields = new Map<string, unknown>(Object.entries(value));
  const bootId = fields.get('bootId');
  const holder = fields.get('holder');
  if (typeof bootId !== 'string' || typeof holder !== 'string') return undefined;
  return {
    bootId,
    holder,
    unsettledSince: numberOrUndefined(fields.get('unsettledSince')),
    inheritedSince: numberOrUndefined(fields.get('inheritedSince')),
  };
}

function numberOrUndefined(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
