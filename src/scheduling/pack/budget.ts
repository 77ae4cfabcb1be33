// SPDX-License-Identifier: Apache-2.0
// How much of a limit is used up.

import type { Resources } from '../../model/resources.ts';
import type { Limits } from './offer.ts';

export interface LimitHit {
  /** Whose limit: a pool's, or that of a place. */
  readonly of: string;
  readonly limit: 'machines' | 'cpu' | 'memory';
  readonly allowed: number;
  /** Used so far, and what would be added. */
  readonly used: number;
  readonly adding: number;
}

export interface Growth {
  readonly machines: 0 | 1;
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

export class Budget {
  readonly #name: string;
  readonly #limits: Limits;
  #machines = 0;
  #cpuMilli = 0;
  #memoryBytes = 0;

  constructor(name: string, limits: Limits) {
    this.#name = name;
    this.#limits = limits;
  }

  get isLimited(): boolean {
    const { machines, cpuMilli, memoryBytes } = this.#limits;
    return machines !== undefined || cpuMilli !== undefined || memoryBytes !== undefined;
  }

  /** Undefined: there is room for it. */
  hit(growth: Growth): LimitHit | undefined {
    const checks = [
      ['machines', this.#limits.machines, this.#machines, growth.machines],
      ['cpu', this.#limits.cpuMilli, this.#cpuMilli, growth.cpuMilli],
      ['memory', this.#limits.memoryBytes, this.#memoryBytes, growth.memoryBytes],
    ] as const;
    for (const [limit, allowed, used, adding] of checks) {
      if (allowed !== undefined && adding > 0 && used + adding > allowed) {
        return { of: this.#name, limit, allowed, used, adding };
      }
    }
    return undefined;
  }

  take({ machines, cpuMilli, memoryBytes }: Growth): void {
    this.#machines += machines;
    this.#cpuMilli += cpuMilli;
    this.#memoryBytes += memoryBytes;
  }
}

export function newMachine(capacity: Resources): Growth {
  return { machines: 1, cpuMilli: capacity.cpuMilli, memoryBytes: capacity.memoryBytes };
}

export function enlargement(before: Resources, after: Resources): Growth {
  return {
    machines: 0,
    cpuMilli: after.cpuMilli - before.cpuMilli,
    memoryBytes: after.memoryBytes - before.memoryBytes,
  };
}
