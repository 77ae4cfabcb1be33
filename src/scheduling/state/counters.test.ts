// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { aNode } from '../testing/builders.ts';
import { DomainCounter } from './domain-counter.ts';
import { SpreadCounter } from './spread-counter.ts';
import { NO_DOMAIN, Topology } from './topology.ts';

function topology(...values: (string | undefined)[]): Topology {
  const made = new Topology('zone');
  for (const [slot, value] of values.entries()) {
    made.add(slot, aNode({ labels: value === undefined ? {} : { zone: value } }));
  }
  return made;
}

describe('Topology', () => {
  test('nodes with the same value share a domain', () => {
    const zones = topology('a', 'b', 'a', undefined);
    expect([0, 1, 2, 3, 9].map((slot) => zones.of(slot))).toEqual([0, 1, 0, NO_DOMAIN, NO_DOMAIN]);
    expect([0, 1, 5].map((domain) => zones.name(domain))).toEqual(['a', 'b', '']);
    zones.remove(0);
    expect(zones.of(0)).toBe(NO_DOMAIN);
    expect(zones.domain('a')).toBe(0);
    expect(zones.domain('c')).toBe(2);
  });

  test('an empty value is a value', () => {
    expect(topology('').of(0)).toBe(0);
  });
});

describe('DomainCounter', () => {
  test('counts by domain, and pods without one not at all', () => {
    const counter = new DomainCounter(topology('a', 'b', 'a', undefined));
    counter.add(0, 1);
    counter.add(2, 2);
    counter.add(3, 5);
    expect([0, 1, 2, 3].map((slot) => counter.at(slot))).toEqual([3, 0, 3, 0]);
    expect(counter.total).toBe(3);
    counter.add(0, -1);
    expect([counter.at(2), counter.total]).toEqual([2, 2]);
  });
});

describe('SpreadCounter', () => {
  test('knows the emptiest of the domains that count', () => {
    const zones = topology('a', 'b', 'c', undefined);
    const counter = new SpreadCounter(zones, (slot) => slot !== 2);
    expect([counter.domains, counter.minimum]).toEqual([0, 0]);
    for (const slot of [0, 1, 2, 3]) counter.addNode(slot);
    expect([counter.domains, counter.minimum]).toEqual([2, 0]);
    counter.add(0, 3);
    counter.add(1, 1);
    counter.add(2, 9);
    counter.add(3, 9);
    expect([counter.inDomain(0), counter.inDomain(1), counter.inDomain(2)]).toEqual([3, 1, 0]);
    expect(counter.minimum).toBe(1);
    counter.add(1, 4);
    expect(counter.minimum).toBe(3);
    counter.add(0, -3);
    expect(counter.minimum).toBe(0);
  });

  test('a domain is there while a node of it counts', () => {
    const counter = new SpreadCounter(topology('a', 'a', 'b'), () => true);
    for (const slot of [0, 1, 2]) counter.addNode(slot);
    counter.add(0, 2);
    counter.removeNode(2);
    expect([counter.domains, counter.minimum]).toEqual([1, 2]);
    counter.removeNode(1);
    expect([counter.domains, counter.minimum, counter.inDomain(0)]).toEqual([1, 2, 2]);
    counter.add(0, -2);
    counter.removeNode(0);
    counter.removeNode(0);
    expect([counter.domains, counter.minimum, counter.inDomain(0)]).toEqual([0, 0, 0]);
    counter.addNode(2);
    counter.add(2, 4);
    expect([counter.domains, counter.minimum]).toEqual([1, 4]);
  });

  test('agrees with counting again after every change', () => {
    const change = fc.record({
      kind: fc.constantFrom('come', 'come', 'come', 'go', 'open', 'close'),
      slot: fc.integer({ min: 0, max: 5 }),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const model = new Recount();
        for (const { kind, slot } of changes) {
          model[kind](slot);
          const counts = model.counts();
          expect(model.counter.domains).toBe(counts.length);
          expect(model.counter.minimum).toBe(counts.length === 0 ? 0 : Math.min(...counts));
        }
      }),
    );
  });
});

const VALUES = ['a', 'b', 'c', 'a', 'b', undefined];
const INELIGIBLE = 4;

/** Drives a counter and counts everything again. */
class Recount {
  readonly counter = new SpreadCounter(topology(...VALUES), (slot) => slot !== INELIGIBLE);
  readonly #pods = [0, 0, 0, 0, 0, 0];
  readonly #present = new Set<number>();

  #on(slot: number): number {
    return this.#pods[slot] ?? 0;
  }

  come(slot: number): void {
    if (!this.#present.has(slot)) return;
    this.#pods[slot] = this.#on(slot) + 1;
    this.counter.add(slot, 1);
  }

  go(slot: number): void {
    if (this.#on(slot) === 0) return;
    this.#pods[slot] = this.#on(slot) - 1;
    this.counter.add(slot, -1);
  }

  open(slot: number): void {
    if (this.#present.has(slot)) return;
    this.#present.add(slot);
    this.counter.addNode(slot);
  }

  close(slot: number): void {
    if (this.#on(slot) > 0 || !this.#present.delete(slot)) return;
    this.counter.removeNode(slot);
  }

  counts(): readonly number[] {
    const slots = [...this.#present].filter(
      (slot) => slot !== INELIGIBLE && VALUES[slot] !== undefined,
    );
    const domains = Map.groupBy(slots, (slot) => VALUES[slot]);
    return [...domains.values()].map((all) => all.reduce((sum, slot) => sum + this.#on(slot), 0));
  }
}
