// SPDX-License-Identifier: Apache-2.0
import type { PoolConfig } from '../config/types/index.ts';
import type { Clock } from '../ports/clock.ts';

export interface ExternalGrpcSettings {
  /** Each is a node group of the Cluster Autoscaler, or one per size of its list. */
  readonly pools: readonly PoolConfig[];
  readonly pricing: { readonly vcpuHour: number; readonly memoryGiBHour: number };
  readonly gpu: { readonly label: string; readonly types: readonly string[] };
}

/** The autoscaler scans every ten seconds, and a loop over many nodes may take longer. */
const MAX_LOOP_MS = 60_000;

/**
 * The settings that calls are answered with. New ones apply from the next Refresh on, with which the autoscaler begins
 * each loop and discards its node groups: a group never disappears within a loop. Without a Refresh they apply after a
 * minute.
 */
export class CurrentSettings {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #value: ExternalGrpcSettings;
  #next: { readonly value: ExternalGrpcSettings; readonly since: number } | undefined;

  constructor(value: ExternalGrpcSettings, clock: Pick<Clock, 'monotonic'>) {
    this.#value = value;
    this.#clock = clock;
  }

  /** Another object after each change. */
  get value(): ExternalGrpcSettings {
    if (this.#next !== undefined && this.#clock.monotonic() - this.#next.since >= MAX_LOOP_MS)
      this.beginLoop();
    return this.#value;
  }

  replace(value: ExternalGrpcSettings): void {
    this.#next = { value, since: this.#clock.monotonic() };
  }

  beginLoop(): void {
    this.#value = this.#next?.value ?? this.#value;
    this.#next = undefined;
  }
}
