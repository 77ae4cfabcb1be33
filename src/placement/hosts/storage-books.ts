// SPDX-License-Identifier: Apache-2.0
// What is left on the storages of a region. A shared storage has one account, whichever host looks at it.
import type { Host, HostStorage } from '../../model/host.ts';
import type { RegionFacts } from './facts.ts';

interface Reading {
  readonly freeBytes: number;
  readonly totalBytes: number;
}

export class StorageBooks {
  readonly #shared: ReadonlySet<string>;
  readonly #thin: ReadonlySet<string>;
  readonly #readings = new Map<string, Reading>();
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

  /** Not below what was promised already: may be negative. */
  room(host: string, storage: string): number {
    const account = this.#account(host, storage);
    const reading = this.#readings.get(account);
    if (reading === undefined) return 0;
    return this.#limit(storage, reading) - this.pending(host, storage);
  }

  pending(host: string, storage: string): number {
    return this.#pending.get(this.#account(host, storage)) ?? 0;
  }

  /** Whether hosts take from one account there. */
  isShared(storage: string): boolean {
    return this.#shared.has(storage);
  }

  reserve(host: string, storage: string, bytes: number): void {
    this.#pending.set(this.#account(host, storage), this.pending(host, storage) + bytes);
  }

  // A thin storage that has run full stops every VM on it: its total promises nothing any more.
  #limit(storage: string, { freeBytes, totalBytes }: Reading): number {
    return this.#thin.has(storage) && freeBytes > 0 ? totalBytes : freeBytes;
  }

  #account(host: string, storage: string): string {
    return this.#shared.has(storage) ? storage : `${host}/${storage}`;
  }

  #readAll({ name, online, storages }: Host): void {
    for (const storage of storages) if (online && storage.active) this.#read(name, storage);
  }

  // Hosts read a shared storage at different times; the lowest reading is the safe one.
  #read(host: string, { name, freeBytes, totalBytes }: HostStorage): void {
    const account = this.#account(host, name);
    const known = this.#readings.get(account) ?? { freeBytes, totalBytes };
    this.#readings.set(account, {
      freeBytes: Math.min(known.freeBytes, freeBytes),
      totalBytes: Math.min(known.totalBytes, totalBytes),
    });
  }
}
