// SPDX-License-Identifier: Apache-2.0
// Free space of a region's storages. A shared storage is counted once, whichever host reports it.
import type { Host, HostStorage } from '../../model/host.ts';
import type { RegionFacts } from './facts.ts';

interface StorageReading {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

export class StorageSpace {
  readonly #shared: ReadonlySet<string>;
  readonly #thin: ReadonlySet<string>;
  readonly #readings = new Map<string, StorageReading>();
  readonly #pending = new Map<string, number>();

  constructor({ hosts, reservations }: RegionFacts, thin: readonly string[]) {
    const all = hosts.flatMap(({ storages }) => storages);
    this.#shared = new Set(all.filter(({ shared }) => shared).map(({ name }) => name));
    this.#thin = new Set(thin);
    for (const host of hosts) this.#readAll(host);
    for (const { host, storage, pendingDiskBytes } of reservations) {
      this.reserve(host, storage, pendingDiskBytes);
    }
  }

  /** Negative if more is reserved than free. */
  freeBytes(host: string, storage: string): number {
    const key = this.#keyOf(host, storage);
    const reading = this.#readings.get(key);
    if (reading === undefined) return 0;
    return this.#limit(storage, reading) - this.pendingBytes(host, storage);
  }

  pendingBytes(host: string, storage: string): number {
    return this.#pending.get(this.#keyOf(host, storage)) ?? 0;
  }

  /** Whether all hosts allocate from the same space. */
  isShared(storage: string): boolean {
    return this.#shared.has(storage);
  }

  reserve(host: string, storage: string, bytes: number): void {
    this.#pending.set(this.#keyOf(host, storage), this.pendingBytes(host, storage) + bytes);
  }

  // A full thin storage stops every VM on it, so its total size no longer counts as available.
  #limit(storage: string, { freeBytes, totalBytes }: StorageReading): number {
    return this.#thin.has(storage) && freeBytes > 0 ? totalBytes : freeBytes;
  }

  #keyOf(host: string, storage: string): string {
    return this.#shared.has(storage) ? storage : `${host}/${storage}`;
  }

  #readAll({ name, online, storages }: Host): void {
    for (const storage of storages) if (online && storage.active) this.#read(name, storage);
  }

  // Hosts report a shared storage at different times; the lowest value is safe.
  #read(host: string, { name, freeBytes, totalBytes }: HostStorage): void {
    const key = this.#keyOf(host, name);
    const known = this.#readings.get(key) ?? { freeBytes, totalBytes };
    this.#readings.set(key, {
      freeBytes: Math.min(known.freeBytes, freeBytes),
      totalBytes: Math.min(known.totalBytes, totalBytes),
    });
  }
}
