// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { networkProblem } from './check-seed-input.ts';
import { renderNetworkConfig } from './render-seed.ts';
import type { FamilyInput, InterfaceInput, NetworkInput } from './seed-input.ts';
import { aNetwork, MAC } from './testing/a-seed.ts';

function oneCard(overrides: Partial<InterfaceInput>, names: Partial<NetworkInput> = {}) {
  const [card] = aNetwork().interfaces;
  return aNetwork({ interfaces: card === undefined ? [] : [{ ...card, ...overrides }], ...names });
}

const v4 = (address: string, gateway?: string): FamilyInput => ({
  kind: 'static',
  addresses: [address],
  gateway,
});

describe('renderNetworkConfig', () => {
  it('uses DHCP and router advertisements by default', () => {
    expect(renderNetworkConfig(aNetwork())).toBe(`version: 2
ethernets:
  eth0:
    match:
      macaddress: "bc:24:11:00:00:07"
    set-name: eth0
    dhcp4: true
    dhcp6: false
    accept-ra: true
    dhcp-identifier: mac
`);
  });

  it('writes static addresses of both families, routes, name servers and an MTU', () => {
    const network = oneCard(
      {
        mtu: 9000,
        v4: v4('10.0.0.11/24', '10.0.0.1'),
        v6: v4('2001:db8::11/64', 'fe80::1'),
        routes: [{ to: '192.168.0.0/16', via: '10.0.0.254' }],
      },
      { dns: ['10.0.0.1', '2001:db8::53'], search: ['example.org'] },
    );
    expect(renderNetworkConfig(network)).toBe(`version: 2
ethernets:
  eth0:
    match:
      macaddress: "bc:24:11:00:00:07"
    set-name: eth0
    dhcp4: false
    dhcp6: false
    accept-ra: false
    addresses:
      - "10.0.0.11/24"
      - "2001:db8::11/64"
    routes:
      - to: "0.0.0.0/0"
        via: "10.0.0.1"
      - to: "::/0"
        via: "fe80::1"
      - to: "192.168.0.0/16"
        via: "10.0.0.254"
    mtu: 9000
    nameservers:
      addresses:
        - "10.0.0.1"
        - "2001:db8::53"
      search:
        - example.org
`);
  });

  it.each([
    [{ kind: 'auto' } as const, false, true],
    [{ kind: 'dhcp' } as const, true, true],
    [{ kind: 'off' } as const, false, false],
    [v4('2001:db8::1/64'), false, true],
    [v4('2001:db8::1/64', '2001:db8::2'), false, false],
  ])('writes IPv6 %j', (v6, dhcp6, acceptRa) => {
    const text = renderNetworkConfig(oneCard({ v6, v4: { kind: 'off' } }));
    expect(parse(text).ethernets.eth0).toMatchObject({
      dhcp4: false,
      dhcp6,
      'accept-ra': acceptRa,
    });
  });

  it('marks a gateway as on-link if no subnet contains it', () => {
    const alone = renderNetworkConfig(oneCard({ v4: v4('203.0.113.7/32', '10.0.0.1'), mtu: 1 }));
    const { eth0 } = parse(alone).ethernets;
    expect(eth0.routes).toEqual([{ to: '0.0.0.0/0', via: '10.0.0.1', 'on-link': true }]);
    expect(eth0).not.toHaveProperty('mtu');
    const wide = parse(renderNetworkConfig(oneCard({ v6: v4('2001:db8::1/32', '2001:db8::2') })));
    expect(wide.ethernets.eth0.routes).toEqual([{ to: '::/0', via: '2001:db8::2' }]);
  });

  it('sets name servers on the first interface only, and names every interface', () => {
    const [card] = aNetwork().interfaces;
    const second = { ...card!, mac: 'bc:24:11:00:00:08', v4: { kind: 'off' } as const };
    const text = renderNetworkConfig(aNetwork({ interfaces: [card!, second], dns: ['10.0.0.1'] }));
    const { eth0, eth1 } = parse(text).ethernets;
    expect(eth0.nameservers).toEqual({ addresses: ['10.0.0.1'] });
    expect(eth1).toMatchObject({ 'set-name': 'eth1', match: { macaddress: second.mac } });
    expect(eth1).not.toHaveProperty('nameservers');
  });

  it('parses back to the same values for random addresses', () => {
    const cidr4 = fc
      .tuple(fc.ipV4(), fc.integer({ min: 1, max: 32 }))
      .map((parts) => parts.join('/'));
    const cidr6 = fc
      .tuple(fc.ipV6(), fc.integer({ min: 1, max: 128 }))
      .map((parts) => parts.join('/'));
    const mac = fc
      .uint8Array({ minLength: 6, maxLength: 6 })
      .map((bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(':'));
    fc.assert(
      fc.property(fc.tuple(cidr4, cidr6, mac, fc.ipV4()), ([four, six, address, gateway]) => {
        const network = oneCard({ mac: address, v4: v4(four, gateway), v6: v4(six) });
        expect(networkProblem(network)).toBeUndefined();
        for (const version of ['1.1', '1.2'] as const) {
          const { eth0 } = parse(renderNetworkConfig(network), { version }).ethernets;
          expect(eth0.match.macaddress).toBe(address);
          expect(eth0.addresses).toEqual([four, six]);
          expect(eth0.routes[0].via).toBe(gateway);
        }
      }),
    );
  });
});

describe('networkProblem', () => {
  it.each([
    [aNetwork({ interfaces: [] }), 'the machine has no network interface'],
    [oneCard({ mac: 'bc:24:11' }), "'bc:24:11' is not a MAC address"],
    [oneCard({ mtu: 70_000 }), 'MTU 70000 is not between 1 and 65520'],
    [oneCard({ mtu: 1.5 }), 'MTU 1.5 is not between 1 and 65520'],
    [oneCard({ v4: { kind: 'auto' } }), 'IPv4 does not support router advertisements'],
    [oneCard({ v4: v4('10.0.0.1') }), "'10.0.0.1' is not an IPv4 address with a prefix"],
    [oneCard({ v4: v4('10.0.0.1/33') }), "'10.0.0.1/33' is not an IPv4 address with a prefix"],
    [oneCard({ v4: v4('10.0.0.256/24') }), "'10.0.0.256/24' is not an IPv4 address with a prefix"],
    [
      oneCard({ v4: v4('2001:db8::1/64') }),
      "'2001:db8::1/64' is not an IPv4 address with a prefix",
    ],
    [oneCard({ v6: v4('10.0.0.1/24') }), "'10.0.0.1/24' is not an IPv6 address with a prefix"],
    [
      oneCard({ v6: v4('2001:db8::1/64/1') }),
      "'2001:db8::1/64/1' is not an IPv6 address with a prefix",
    ],
    [oneCard({ v4: v4('10.0.0.1/24', 'fe80::1') }), "gateway 'fe80::1' is not an IPv4 address"],
    [
      oneCard({ v4: { kind: 'static', addresses: [], gateway: undefined } }),
      'static IPv4 needs an address',
    ],
    [
      oneCard({ routes: [{ to: '10.0.0.0/8', via: '::1' }] }),
      "'10.0.0.0/8' via '::1' is not a valid route",
    ],
    [aNetwork({ dns: ['dns.example'] }), "name server 'dns.example' is not an IP address"],
    [aNetwork({ search: ['a b'] }), "search domain 'a b' is not a domain"],
  ])('refuses invalid input %#', (network, problem) => {
    expect(networkProblem(network)).toBe(problem);
  });

  it('refuses the same MAC address on two interfaces', () => {
    const [card] = aNetwork().interfaces;
    const interfaces = [card!, { ...card!, mac: MAC.toLowerCase() }];
    expect(networkProblem(aNetwork({ interfaces }))).toBe(
      `MAC address '${MAC.toLowerCase()}' is used twice`,
    );
  });
});
