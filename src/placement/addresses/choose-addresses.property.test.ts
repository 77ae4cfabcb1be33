// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { COOL_DOWN_MS } from '../cool-down.ts';
import {
  chooseWith,
  chosenAddresses,
  held,
  MINUTE,
  NOW,
  type StaticRule,
  staticRule,
  V6,
} from '../testing/address-builders.ts';
import { formatAddress, readAddress } from './address.ts';
import { countFreeAddresses } from './choose-addresses.ts';

describe('chooseAddresses, for random requests', () => {
  const anAddress = (family: 4 | 6) =>
    fc.integer({ min: 0, max: 40 }).map((offset) =>
      formatAddress({
        family,
        value: readAddress(family === 4 ? '10.0.0.0' : '2001:db8::')!.value + BigInt(offset),
      }),
    );
  const aCase = (family: 4 | 6) =>
    fc.record({
      ends: fc.tuple(anAddress(family), anAddress(family)),
      prefix: family === 4 ? fc.integer({ min: 27, max: 32 }) : fc.integer({ min: 64, max: 128 }),
      gateway: fc.option(anAddress(family), { nil: undefined }),
      taken: fc.array(anAddress(family), { maxLength: 12 }),
      held: fc.array(
        fc
          .record({ address: anAddress(family), ago: fc.option(fc.nat(60), { nil: undefined }) })
          .map(({ address, ago }) =>
            held(address, ago === undefined ? {} : { releasedAt: NOW - ago * MINUTE }),
          ),
        { maxLength: 12 },
      ),
    });

  it.each([4, 6] as const)(
    'IPv%d: never returns an address in use and does not depend on the order',
    (family) => {
      fc.assert(
        fc.property(aCase(family), ({ ends, prefix, gateway, taken, held: all }) => {
          const [from, to] = ends;
          const rule = staticRule(from, to, { prefix, gateway });
          const families = family === 4 ? { v4: rule } : { v4: { kind: 'off' } as const, v6: rule };
          const choice = chooseWith({ ...families, taken, held: all });
          const turned = { taken: taken.toReversed(), held: all.toReversed() };
          expect(chooseWith({ ...families, ...turned })).toEqual(choice);
          if (!choice.chosen) return;
          const [text = ''] = choice.addresses;
          const bare = text.replace(/\/.*/, '');
          const current = all.filter(({ releasedAt = NOW }) => releasedAt > NOW - COOL_DOWN_MS);
          expect(text).toBe(`${bare}/${prefix}`);
          const inUse = [gateway, ...taken, ...current.flatMap(({ addresses }) => addresses)];
          expect(inUse).not.toContain(bare);
          const value = readAddress(bare)!.value;
          expect(value >= readAddress(from)!.value && value <= readAddress(to)!.value).toBe(true);
        }),
        { numRuns: 500 },
      );
    },
  );

  it('counts as many free addresses as can be assigned one after the other', () => {
    fc.assert(
      fc.property(aCase(4), aCase(6), fc.nat(20), (one, other, atMost) => {
        const [v4, v6] = [one, other].map(({ ends: [from, to], prefix, gateway }) =>
          staticRule(from, to, { prefix, gateway }),
        ) as [StaticRule, StaticRule];
        const facts = {
          v4,
          v6,
          taken: [...one.taken, ...other.taken],
          held: [...one.held, ...other.held],
          now: NOW,
        };
        const all: string[] = [];
        let count = 0;
        for (; count < atMost; count += 1) {
          const choice = chooseWith({ ...facts, taken: [...facts.taken, ...all] });
          if (!choice.chosen) break;
          all.push(...choice.addresses);
        }
        expect(countFreeAddresses(facts, atMost).count).toBe(count);
      }),
      { numRuns: 300 },
    );
  });

  it('does not iterate over a huge range', () => {
    const taken = Array.from(
      { length: 5_000 },
      (_, index) => `2001:db8::${(index + 2).toString(16)}`,
    );
    expect(chosenAddresses({ v4: { kind: 'off' }, v6: V6, taken })).toEqual([
      `2001:db8::${(5_002).toString(16)}/64`,
    ]);
  });
});
