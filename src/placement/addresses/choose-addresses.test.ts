// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { AddressLease } from '../../model/address-lease.ts';
import { COOL_DOWN_MS } from '../cool-down.ts';
import {
  ask,
  fixed,
  given,
  lease,
  ME,
  MINUTE,
  NOW,
  type StaticRule,
  V4,
  V6,
} from '../testing/address-builders.ts';

describe('addresses', () => {
  it('are none where nothing is static', () => {
    expect(given({ v4: { kind: 'dhcp' }, v6: { kind: 'off' } })).toEqual([]);
  });

  it('are the lowest free, with the prefix length', () => {
    expect(given()).toEqual(['10.10.10.11/24']);
  });

  it('are one of each static family', () => {
    expect(given({ v6: V6 })).toEqual(['10.10.10.11/24', '2001:db8::2/64']);
    expect(given({ v4: { kind: 'off' }, v6: V6 })).toEqual(['2001:db8::2/64']);
  });

  it.each([
    ['another VM has, with its prefix length', { taken: ['10.10.10.11/24'] }],
    ['a Node has, bare', { taken: ['10.10.10.11'] }],
    ['somebody has in IPv6 form', { taken: ['::ffff:10.10.10.11'] }],
    ['another machine holds', { leases: [lease('10.10.10.11')] }],
    ['was freed lately', { leases: [lease('10.10.10.11', { releasedAt: NOW - 29 * MINUTE })] }],
    [
      'this machine gave back lately',
      { leases: [lease('10.10.10.11', { machine: ME, releasedAt: NOW - 1 })] },
    ],
    ['is the gateway', { v4: fixed('10.10.10.11', '10.10.10.14', { gateway: '10.10.10.11' }) }],
  ])('skip what %s', (_, overrides) => {
    expect(given(overrides)).toEqual(['10.10.10.12/24']);
  });

  it.each([
    ['has rested', { leases: [lease('10.10.10.11', { releasedAt: NOW - COOL_DOWN_MS })] }],
    [
      'has rested as long as it is told',
      { leases: [lease('10.10.10.11', { releasedAt: NOW - 5 })], coolDownMs: 5 },
    ],
    ['is held in another region', { leases: [lease('10.10.10.11', { region: 'other' })] }],
    ['is no address at all', { taken: ['dhcp', '', 'auto', '10.10.10.11.5', '2001:db8::11'] }],
  ])('do not skip what %s', (_, overrides) => {
    expect(given(overrides)).toEqual(['10.10.10.11/24']);
  });

  it.each([
    '2001:DB8::2',
    '2001:0db8:0:0:0:0:0:0002',
    '2001:db8::2/64',
    ' 2001:db8::0.0.0.2',
    '2001:db8::2%eth0',
  ])('know IPv6 in the form %s', (text) => {
    expect(given({ v4: { kind: 'off' }, v6: V6, taken: [text] })).toEqual(['2001:db8::3/64']);
  });

  it.each([
    [
      'IPv4: network and broadcast',
      fixed('10.0.0.0', '10.0.0.3', { prefix: 30 }),
      ['10.0.0.1/30', '10.0.0.2/30'],
    ],
    [
      'IPv4: none of two',
      fixed('10.0.0.0', '10.0.0.1', { prefix: 31 }),
      ['10.0.0.0/31', '10.0.0.1/31'],
    ],
    ['IPv4: not a single one', fixed('10.0.0.0', '10.0.0.0', { prefix: 32 }), ['10.0.0.0/32']],
    [
      'IPv4: of every subnet',
      fixed('10.0.0.2', '10.0.0.5', { prefix: 30 }),
      ['10.0.0.2/30', '10.0.0.5/30'],
    ],
  ])('leave out what is reserved in %s', (_, v4, expected) => {
    expect(allOf(v4, 4)).toEqual(expected);
  });

  it('leave out the first of an IPv6 subnet, but not the last', () => {
    const v6 = fixed('2001:db8::', '2001:db8::3', { prefix: 126 });
    expect(allOf(v6, 6)).toEqual(['2001:db8::1/126', '2001:db8::2/126', '2001:db8::3/126']);
  });

  it('come from the ranges in the order in which they stand', () => {
    const ranges = [
      { from: '10.0.0.30', to: '10.0.0.30' },
      { from: '10.0.0.20', to: '10.0.0.21' },
    ];
    expect(allOf({ ...V4, ranges }, 4)).toEqual(['10.0.0.30/24', '10.0.0.20/24', '10.0.0.21/24']);
  });

  it('are not taken from ranges of the other family', () => {
    expect(given({ v4: fixed('2001:db8::5', '2001:db8::9') })).toBe('NO_ADDRESS_FREE');
    expect(given({ v4: fixed('10.0.0.5', '2001:db8::9') })).toBe('NO_ADDRESS_FREE');
  });
});

describe('a machine that holds a lease already', () => {
  const own = (address: string, overrides: Partial<AddressLease> = {}) =>
    lease(address, { machine: ME, ...overrides });

  it('gets the same again: it may have crashed before its placement was written', () => {
    expect(given({ leases: [own('10.10.10.13')] })).toEqual(['10.10.10.13/24']);
    expect(given({ leases: [own('10.10.10.14'), own('10.10.10.13')] })).toEqual(['10.10.10.13/24']);
  });

  it.each([
    ['somebody uses it', { leases: [own('10.10.10.13')], taken: ['10.10.10.13'] }],
    ['it is not of the pool any more', { leases: [own('10.10.10.99')] }],
    ['it is of another region', { leases: [own('10.10.10.13', { region: 'other' })] }],
  ])('gets another when %s', (_, overrides) => {
    expect(given(overrides)).toEqual(['10.10.10.11/24']);
  });
});

describe('without a free address', () => {
  it('it says who has them, and when the next is free', () => {
    const leases = [
      lease('10.10.10.11'),
      lease('10.10.10.12', { releasedAt: NOW - 10 * MINUTE }),
      lease('10.10.10.13', { releasedAt: NOW - 20 * MINUTE }),
      lease('10.10.10.14', { releasedAt: NOW - 29 * MINUTE }),
      lease('10.10.10.99'),
    ];
    expect(ask({ leases, taken: ['10.10.10.14', '10.10.10.1'] })).toEqual({
      chosen: false,
      code: 'NO_ADDRESS_FREE',
      family: 4,
      sentence:
        'no IPv4 address of 10.10.10.11-10.10.10.14 is free (all: 4, leased: 1, freed lately: 2, ' +
        'used by other VMs or Nodes: 1); the next is free in 10 min',
      numbers: { addresses: '4', leased: 1, resting: 2, used: 1, nextFreeInMs: 10 * MINUTE },
    });
  });

  it('one missing family is enough', () => {
    const v6 = fixed('2001:db8::5', '2001:db8::5', { prefix: 64 });
    expect(ask({ v6, taken: ['2001:db8::5'] })).toEqual({
      chosen: false,
      code: 'NO_ADDRESS_FREE',
      family: 6,
      sentence:
        'no IPv6 address of 2001:db8::5 is free (all: 1, leased: 0, freed lately: 0, used by other VMs or Nodes: 1)',
      numbers: { addresses: '1', leased: 0, resting: 0, used: 1 },
    });
  });
});

/** One after the other until there is none. */
function allOf(rule: StaticRule, family: 4 | 6): readonly string[] {
  const taken: string[] = [];
  for (;;) {
    const families = family === 4 ? { v4: rule } : { v4: { kind: 'off' } as const, v6: rule };
    const choice = ask({ ...families, taken });
    if (!choice.chosen) return taken;
    taken.push(...choice.addresses);
  }
}
