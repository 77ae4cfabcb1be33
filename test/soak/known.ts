// SPDX-License-Identifier: Apache-2.0
// What the soak itself knows about a seed's world: whoever judges reads and writes it here.
import { createHash } from 'node:crypto';
import type { Machine } from '../../src/model/machine.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { type SimulatedRegion } from '../proxmox/simulated-region.ts';

const START = Date.UTC(2026, 0, 1);

export class Known {
  readonly region: SimulatedRegion;
  store: MemoryStore;
  /** VMs that are not ours, as they were. */
  readonly strangers = new Map<number, string>();
  readonly violations: string[] = [];
  readonly coverage = new Map<string, number>();
  /** Machines that somebody asked to take away, or took away. */
  readonly dismissed = new Set<string>();
  readonly readyOnce = new Set<string>();
  readonly over = new Set<string>();
  lastSeen: ReadonlySet<string> = new Set();
  /** Of whoever holds the lease. */
  token = 0;
  readonly #hash = createHash('sha256');

  constructor(region: SimulatedRegion) {
    this.region = region;
    this.store = new MemoryStore({ clock: region.clock });
  }

  get now(): number {
    return this.region.clock.now();
  }

  /** Of everything that was logged so far: the same for the same seed. */
  get hash(): string {
    return this.#hash.copy().digest('hex');
  }

  log(line: string): void {
    this.#hash.update(`${this.now} ${line}\n`);
    const seconds = (this.now - START) / 1_000;
    if (process.env['SOAK_LOG'] !== undefined) console.error(`${seconds.toFixed(1)} ${line}`);
  }

  violated(what: string): void {
    this.log(`VIOLATED ${what}`);
    this.violations.push(`at ${Math.round((this.now - START) / 1_000)} s: ${what}`);
  }

  cover(row: string, column: string): void {
    const key = `${row} ${column}`;
    this.coverage.set(key, (this.coverage.get(key) ?? 0) + 1);
  }

  async machines(): Promise<readonly Machine[]> {
    return (await this.store.machines.list()).map(({ value }) => value);
  }

  loseDatabase(): void {
    this.store = new MemoryStore({ clock: this.region.clock });
    this.over.clear();
  }
}
