// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { aNode } from '../testing/builders.ts';
import { DomainCounter } from './domain-counter.ts';
import { EligibleNodes } from './eligible-nodes.ts';
import { SpreadCounter } from './spread-counter.ts';
import { NO_DOMAIN, Topology } from './topology.ts';

function topology(...values: (string | undefined)[]): Topology {
  const made = new Topology('zone');
  for (const [nodeInfo, value] of values.entries()) {
    made.add(nodeInfo, aNode({ labels: value === undefined ? {} : { zone: value } }));
  }
  return made;
}

describe('Topology', () => {
  test('puts nodes with the same label value into one domain', () => {
    const zones = topology('a', 'b', 'a', undefined);
    expect([0, 1, 2, 3, 9].map((nodeInfo) => zones.domainOf(nodeInfo))).toEqual([
      0,
      1,
      0,
      NO_DOMAIN,
      NO_DOMAIN,
    ]);
    expect([0, 1, 5].map((domain) => zones.domainName(domain))).toEqual(['a', 'b', '']);
    zones.remove(0);
    expect(zones.domainOf(0)).toBe(NO_DOMAIN);
    expect(zones.domainId('a')).toBe(0);
    expect(zones.domainId('c')).toBe(2);
  });

  test('treats an empty label value as a value', () => {
    expect(topology('').domainOf(0)).toBe(0);
  });
});

describe('DomainCounter', () => {
  test('counts by domain and ignores pods without one', () => {
    const counter = new DomainCounter(topology('a', 'b', 'a', undefined));
    counter.add(0, 1);
    counter.add(2, 2);
    counter.add(3, 5);
    expect([0, 1, 2, 3].map((nodeInfo) => counter.podsNear(nodeInfo))).toEqual([3, 0, 3, 0]);
    expect(counter.total).toBe(3);
    counter.add(0, -1);
    expect([counter.podsNear(2), counter.total]).toEqual([2, 2]);
  });
});

describe('SpreadCounter', () => {
  test('returns the smallest count of the eligible domains', () => {
    const zones = topology('a', 'b', 'c', undefined);
    const nodes = new EligibleNodes(zones, (nodeInfo) => nodeInfo !== 2);
    const counter = new SpreadCounter(nodes);
    expect([counter.domains, counter.minimum]).toEqual([0, 0]);
    for (const nodeInfo of [0, 1, 2, 3]) nodes.addNode(nodeInfo);
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

  test('drops a domain when its last eligible node is removed', () => {
    const nodes = new EligibleNodes(topology('a', 'a', 'b'), () => true);
    for (const nodeInfo of [0, 1, 2]) nodes.addNode(nodeInfo);
    const counter = new SpreadCounter(nodes);
    counter.add(0, 2);
    nodes.removeNode(2);
    expect([counter.domains, counter.minimum]).toEqual([1, 2]);
    nodes.removeNode(1);
    expect([counter.domains, counter.minimum, counter.inDomain(0)]).toEqual([1, 2, 2]);
    counter.add(0, -2);
    nodes.removeNode(0);
    nodes.removeNode(0);
    expect([counter.domains, counter.minimum, counter.inDomain(0)]).toEqual([0, 0, 0]);
    nodes.addNode(2);
    counter.add(2, 4);
    expect([counter.domains, counter.minimum]).toEqual([1, 4]);
  });

  test('equals a full recount after every change', () => {
    const change = fc.record({
      kind: fc.constantFrom('come', 'come', 'come', 'go', 'open', 'close'),
      nodeInfo: fc.integer({ min: 0, max: 5 }),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), (changes) => {
        const model = new Recount();
        for (const { kind, nodeInfo } of changes) {
          model[kind](nodeInfo);
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

/** Applies random changes to a counter and recounts everything. */
class Recount {
  readonly #nodes = new EligibleNodes(topology(...VALUES), (nodeInfo) => nodeInfo !== INELIGIBLE);
  readonly counter = new SpreadCounter(this.#nodes);
  readonly #pods = [0, 0, 0, 0, 0, 0];
  readonly #present = new Set<number>();

  #on(nodeInfo: number): number {
    return this.#pods[nodeInfo] ?? 0;
  }

  come(nodeInfo: number): void {
    if (!this.#present.has(nodeInfo)) return;
    this.#pods[nodeInfo] = this.#on(nodeInfo) + 1;
    this.counter.add(nodeInfo, 1);
  }

  go(nodeInfo: number): void {
    if (this.#on(nodeInfo) === 0) return;
    this.#pods[nodeInfo] = this.#on(nodeInfo) - 1;
    this.counter.add(nodeInfo, -1);
  }

  open(nodeInfo: number): void {
    if (this.#present.has(nodeInfo)) return;
    this.#present.add(nodeInfo);
    this.#nodes.addNode(nodeInfo);
  }

  close(nodeInfo: number): void {
    if (this.#on(nodeInfo) > 0 || !this.#present.delete(nodeInfo)) return;
    this.#nodes.removeNode(nodeInfo);
  }

  counts(): readonly number[] {
    const nodeInfos = [...this.#present].filter(
      (nodeInfo) => nodeInfo !== INELIGIBLE && VALUES[nodeInfo] !== undefined,
    );
    const domains = Map.groupBy(nodeInfos, (nodeInfo) => VALUES[nodeInfo]);
    return [...domains.values()].map((all) =>
      all.reduce((sum, nodeInfo) => sum + this.#on(nodeInfo), 0),
    );
  }
}
