// SPDX-License-Identifier: Apache-2.0
// What the soak itself knows about one seed. The invariant checks read and update it.
import { createHash } from 'node:crypto';
import type { Machine } from '../../src/model/machine.ts';
import { MemoryStore } from '../../src/ports/fakes/memory-store.ts';
import { type SimulatedRegion } from '../proxmox/simulated-region.ts';

const START = Date.UTC(2026, 0, 1);

export class SoakState {
  readonly region: SimulatedRegion;
  store: MemoryStore;
  /** Snapshots of the unmanaged VMs, by VM id. */
  readonly unmanagedVms = new Map<number, string>();
  readonly violations: string[] = [];
  readonly coverage = new Map<string, number>();
  /** Machines whose deletion was requested, or whose VM was deleted by an external change. */
  readonly deletionRequested = new Set<string>();
  readonly everReady = new Set<string>();
  readonly ended = new Set<string>();
  presentBefore: ReadonlySet<string> = new Set();
  /** Token of the current lease. */
  leaseToken = 0;
  readonly #hash = createHash('sha256');

  constructor(region: SimulatedRegion) {
    this.region = region;
    this.store = new MemoryStore({ clock: region.clock });
  }

  get now(): number {
    return this.region.clock.now();
  }

  /** Hash of the log so far. The same seed gives the same hash. */
  get hash(): string {
    return this.#hash.copy().digest('hex');
  }

  log(line: string): void {
    this.#hash.update(`${this.now} ${line}\n`);
    const seconds = (this.now - START) / 1_000;
    if (process.env['SOAK_LOG'] !== undefined) console.error(`${seconds.toFixed(1)} ${line}`);
  }

  reportViolation(what: string): void {
    this.log(`invariant violated: ${what}`);
    this.violations.push(`at ${Math.round((this.now - START) / 1_000)} s: ${what}`);
  }

  countFault(row: string, column: string): void {
    const key = `${row} ${column}`;
    this.coverage.set(key, (this.coverage.get(key) ?? 0) + 1);
  }

  async machines(): Promise<readonly Machine[]> {
    return (await this.store.machines.list()).map(({ value }) => value);
  }

  loseDatabase(): void {
    this.store = new MemoryStore({ clock: this.region.clock });
    this.ended.clear();
  }
}
