// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { COOL_DOWN_MS } from '../cool-down.ts';
import {
  chooseWith,
  chosenAddresses,
  held,
  MINUTE,
  NOW,
  OWN_MACHINE,
  type StaticRule,
  staticRule,
  V4,
  V6,
} from '../testing/address-builders.ts';

describe('chooseAddresses', () => {
  it('returns none if no family is static', () => {
    expect(chosenAddresses({ v4: { kind: 'dhcp' }, v6: { kind: 'off' } })).toEqual([]);
  });

  it('returns the lowest free address with its prefix length', () => {
    expect(chosenAddresses()).toEqual(['10.10.10.11/24']);
  });

  it('returns one address of each static family', () => {
    expect(chosenAddresses({ v6: V6 })).toEqual(['10.10.10.11/24', '2001:db8::2/64']);
    expect(chosenAddresses({ v4: { kind: 'off' }, v6: V6 })).toEqual(['2001:db8::2/64']);
  });

  it.each([
    ['another VM has, written with prefix length', { taken: ['10.10.10.11/24'] }],
    ['a Node has, written without prefix length', { taken: ['10.10.10.11'] }],
    ['is taken, written as IPv4-mapped IPv6', { taken: ['::ffff:10.10.10.11'] }],
    ['another machine holds', { held: [held('10.10.10.11/24')] }],
    ['was freed recently', { held: [held('10.10.10.11/24', { releasedAt: NOW - 29 * MINUTE })] }],
    [
      'was freed long ago, but is held again',
      { held: [held('10.10.10.11/24', { releasedAt: 0 }), held('10.10.10.11/24')] },
    ],
    [
      'is the gateway',
      { v4: staticRule('10.10.10.11', '10.10.10.14', { gateway: '10.10.10.11' }) },
    ],
  ])('skips an address that %s', (_, overrides) => {
    expect(chosenAddresses(overrides)).toEqual(['10.10.10.12/24']);
  });

  it.each([
    [
      'has completed its cool-down',
      { held: [held('10.10.10.11/24', { releasedAt: NOW - COOL_DOWN_MS })] },
    ],
    [
      'has completed the given cool-down',
      { held: [held('10.10.10.11/24', { releasedAt: NOW - 5 })], coolDownMs: 5 },
    ],
    [
      'appears only in text that is not an address',
      { taken: ['dhcp', '', 'auto', '10.10.10.11.5', '2001:db8::11'] },
    ],
  ])('does not skip an address that %s', (_, overrides) => {
    expect(chosenAddresses(overrides)).toEqual(['10.10.10.11/24']);
  });

  it.each([
    '2001:DB8::2',
    '2001:0db8:0:0:0:0:0:0002',
    '2001:db8::2/64',
    ' 2001:db8::0.0.0.2',
    '2001:db8::2%eth0',
  ])('recognizes a taken IPv6 address written as %s', (text) => {
    expect(chosenAddresses({ v4: { kind: 'off' }, v6: V6, taken: [text] })).toEqual([
      '2001:db8::3/64',
    ]);
  });

  it.each([
    [
      'IPv4: network and broadcast',
      staticRule('10.0.0.0', '10.0.0.3', { prefix: 30 }),
      ['10.0.0.1/30', '10.0.0.2/30'],
    ],
    [
      'IPv4: none in a subnet of two',
      staticRule('10.0.0.0', '10.0.0.1', { prefix: 31 }),
      ['10.0.0.0/31', '10.0.0.1/31'],
    ],
    [
      'IPv4: none in a subnet of one',
      staticRule('10.0.0.0', '10.0.0.0', { prefix: 32 }),
      ['10.0.0.0/32'],
    ],
    [
      'IPv4: in every subnet of the range',
      staticRule('10.0.0.2', '10.0.0.5', { prefix: 30 }),
      ['10.0.0.2/30', '10.0.0.5/30'],
    ],
  ])('skips reserved addresses: %s', (_, v4, expected) => {
    expect(allOf(v4, 4)).toEqual(expected);
  });

  it('skips the first address of an IPv6 subnet, but not the last', () => {
    const v6 = staticRule('2001:db8::', '2001:db8::3', { prefix: 126 });
    expect(allOf(v6, 6)).toEqual(['2001:db8::1/126', '2001:db8::2/126', '2001:db8::3/126']);
  });

  it('searches the ranges in their configured order', () => {
    const ranges = [
      { from: '10.0.0.30', to: '10.0.0.30' },
      { from: '10.0.0.20', to: '10.0.0.21' },
    ];
    expect(allOf({ ...V4, ranges }, 4)).toEqual(['10.0.0.30/24', '10.0.0.20/24', '10.0.0.21/24']);
  });

  it('ignores ranges of the other family', () => {
    expect(chosenAddresses({ v4: staticRule('2001:db8::5', '2001:db8::9') })).toBe(
      'NO_ADDRESS_FREE',
    );
    expect(chosenAddresses({ v4: staticRule('10.0.0.5', '2001:db8::9') })).toBe('NO_ADDRESS_FREE');
  });
});

describe('chooseAddresses for a machine that is placed again', () => {
  const own = (...addresses: string[]) => ({ machine: OWN_MACHINE, addresses });

  it('returns the addresses that it holds', () => {
    expect(chosenAddresses({ held: [own('10.10.10.13/24')] })).toEqual(['10.10.10.13/24']);
    const both = ['10.10.10.13/24', '2001:db8::7/64'];
    expect(chosenAddresses({ v6: V6, held: [own(...both)] })).toEqual(both);
  });

  it.each([
    ['another VM uses its address', { held: [own('10.10.10.13')], taken: ['10.10.10.13'] }],
    [
      'another machine holds its address too',
      { held: [own('10.10.10.13/24'), held('10.10.10.13/24')] },
    ],
    ['its address is not in the pool any more', { held: [own('10.10.10.99')] }],
  ])('returns another address if %s', (_, overrides) => {
    expect(chosenAddresses(overrides)).toEqual(['10.10.10.11/24']);
  });
});

describe('chooseAddresses without a free address', () => {
  it('reports why the addresses are held and when the next one is free', () => {
    const all = [
      held('10.10.10.11'),
      held('10.10.10.12', { releasedAt: NOW - 10 * MINUTE }),
      held('10.10.10.13', { releasedAt: NOW - 20 * MINUTE }),
      held('10.10.10.13', { releasedAt: NOW - 34 * MINUTE }),
      held('10.10.10.14', { releasedAt: NOW - 29 * MINUTE }),
      held('10.10.10.99'),
    ];
    expect(chooseWith({ held: all, taken: ['10.10.10.14', '10.10.10.1'] })).toEqual({
      chosen: false,
      code: 'NO_ADDRESS_FREE',
      family: 4,
      message:
        'no IPv4 address of 10.10.10.11-10.10.10.14 is free (total: 4, leased: 1, cooling down: 2, ' +
        'used by other VMs or Nodes: 1); the next is free in 10 min',
      numbers: { addresses: '4', leased: 1, coolingDown: 2, used: 1, nextFreeInMs: 10 * MINUTE },
    });
  });

  it('refuses if one family has no free address', () => {
    const v6 = staticRule('2001:db8::5', '2001:db8::5', { prefix: 64 });
    expect(chooseWith({ v6, taken: ['2001:db8::5'] })).toEqual({
      chosen: false,
      code: 'NO_ADDRESS_FREE',
      family: 6,
      message:
        'no IPv6 address of 2001:db8::5 is free (total: 1, leased: 0, cooling down: 0, used by other VMs or Nodes: 1)',
      numbers: { addresses: '1', leased: 0, coolingDown: 0, used: 1 },
    });
  });
});

/** All addresses, assigned one after the other until none is free. */
function allOf(rule: StaticRule, family: 4 | 6): readonly string[] {
  const taken: string[] = [];
  for (;;) {
    const families = family === 4 ? { v4: rule } : { v4: { kind: 'off' } as const, v6: rule };
    const choice = chooseWith({ ...families, taken });
    if (!choice.chosen) return taken;
    taken.push(...choice.addresses);
  }
}
