// SPDX-License-Identifier: Apache-2.0
// Tracks how much of a limit is used.

import type { Resources } from '../../model/resources.ts';
import type { Limits } from './offer.ts';

export interface LimitHit {
  /** The owner of the limit: a pool or a domain. */
  readonly of: string;
  readonly limit: 'machines' | 'cpu' | 'memory' | 'disk';
  readonly allowed: number;
  /** Used so far, and the amount to add. */
  readonly used: number;
  readonly adding: number;
}

export interface Growth {
  readonly machines: 0 | 1;
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

export class Budget {
  readonly #name: string;
  readonly #limits: Limits;
  #machines = 0;
  #cpuMilli = 0;
  #memoryBytes = 0;
  #diskBytes = 0;

  constructor(name: string, limits: Limits) {
    this.#name = name;
    this.#limits = limits;
  }

  get isLimited(): boolean {
    return Object.values(this.#limits).some((limit) => limit !== undefined);
  }

  /** Returns undefined if the growth is within the limits. */
  findExceededLimit(growth: Growth): LimitHit | undefined {
    const checks = [
      ['machines', this.#limits.machines, this.#machines, growth.machines],
      ['cpu', this.#limits.cpuMilli, this.#cpuMilli, growth.cpuMilli],
      ['memory', this.#limits.memoryBytes, this.#memoryBytes, growth.memoryBytes],
      ['disk', this.#limits.diskBytes, this.#diskBytes, growth.diskBytes],
    ] as const;
    for (const [limit, allowed, used, adding] of checks) {
      if (allowed !== undefined && adding > 0 && used + adding > allowed) {
        return { of: this.#name, limit, allowed, used, adding };
      }
    }
    return undefined;
  }

  consume({ machines, cpuMilli, memoryBytes, diskBytes }: Growth): void {
    this.#machines += machines;
    this.#cpuMilli += cpuMilli;
    this.#memoryBytes += memoryBytes;
    this.#diskBytes += diskBytes;
  }
}

export function machineGrowth(capacity: Resources): Growth {
  return {
    machines: 1,
    cpuMilli: capacity.cpuMilli,
    memoryBytes: capacity.memoryBytes,
    diskBytes: capacity.ephemeralStorageBytes,
  };
}

export function sizeGrowth(before: Resources, after: Resources): Growth {
  return {
    machines: 0,
    cpuMilli: after.cpuMilli - before.cpuMilli,
    memoryBytes: after.memoryBytes - before.memoryBytes,
    diskBytes: after.ephemeralStorageBytes - before.ephemeralStorageBytes,
  };
}
