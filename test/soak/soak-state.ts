// SPDX-License-Identifier: Apache-2.0
// What the soak itself knows about one seed. The invariant checks read and update it.
import { createHash } from 'node:crypto';
import type { Machine } from '../../src/model/machine.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { VirtualClock } from '../../src/ports/fakes/virtual-clock.ts';
import type { Inspection } from '../../src/sim/proxmox/index.ts';
import { type SimulatedRegion } from '../proxmox/simulated-region.ts';
import type { Installation } from './installation.ts';

const START = Date.UTC(2026, 0, 1);

export class SoakState {
  readonly clock = new VirtualClock();
  /** The hosts' clocks do not jump. */
  readonly hostClock: Clock = {
    now: () => START + this.clock.monotonic(),
    monotonic: () => this.clock.monotonic(),
    sleep: (...args) => this.clock.sleep(...args),
  };
  readonly regions = new Map<string, SimulatedRegion>();
  readonly installations: Installation[] = [];
  /** Snapshots of the unmanaged VMs, by region and VM id. */
  readonly unmanagedVms = new Map<string, string>();
  readonly violations: string[] = [];
  readonly coverage = new Map<string, number>();
  /** How often each feature was exercised. */
  readonly exercised = new Map<string, number>();
  readonly #hash = createHash('sha256');

  /** Milliseconds since the start; wall clocks jump. */
  get now(): number {
    return this.clock.monotonic();
  }

  /** Hash of the log so far. The same seed gives the same hash. */
  get hash(): string {
    return this.#hash.copy().digest('hex');
  }

  log(line: string): void {
    this.#hash.update(`${this.now} ${line}\n`);
    if (process.env['SOAK_LOG'] !== undefined)
      console.error(`${(this.now / 1_000).toFixed(1)} ${line}`);
  }

  reportViolation(what: string): void {
    this.log(`invariant violated: ${what}`);
    this.violations.push(`at ${Math.round(this.now / 1_000)} s: ${what}`);
  }

  countFault(row: string, column: string): void {
    increment(this.coverage, `${row} ${column}`);
  }

  countFeature(name: string): void {
    increment(this.exercised, name);
  }

  region(name: string): SimulatedRegion {
    const region = this.regions.get(name);
    if (region === undefined) throw new Error(`the seed has no region ${name}`);
    return region;
  }

  inspections(): ReadonlyMap<string, Inspection> {
    return new Map([...this.regions].map(([name, { sim }]) => [name, sim.inspect()]));
  }

  isUnmanaged(region: string, vmId: number): boolean {
    return this.unmanagedVms.has(`${region}/${vmId}`);
  }

  async machines(): Promise<readonly Machine[]> {
    return (await Promise.all(this.installations.map((one) => one.machines()))).flat();
  }
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
