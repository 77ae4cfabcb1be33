// SPDX-License-Identifier: Apache-2.0
// network-config, version 2. Interfaces are matched by MAC and named eth0, eth1, …: renderers other than
// netplan need a name, and the name that udev would choose is not known here.

import { formatYaml } from './format-yaml.ts';
import type { FamilyInput, InterfaceInput, NetworkInput } from './seed-input.ts';

export function renderNetworkConfig({ interfaces, dns, search }: NetworkInput): string {
  const ethernets = interfaces.map((each, index) => [
    `eth${index}`,
    {
      match: { macaddress: each.mac.toLowerCase() },
      'set-name': `eth${index}`,
      ...addressing(each),
      ...(index === 0 ? nameServers(dns, search) : {}),
    },
  ]);
  return formatYaml({ version: 2, ethernets: Object.fromEntries(ethernets) });
}

function addressing({ v4, v6, mtu, routes }: InterfaceInput) {
  const addresses = [...addressesOf(v4), ...addressesOf(v6)];
  const wanted = [
    ...defaultRoute(v4, { to: '0.0.0.0/0', alone: '/32' }),
    ...defaultRoute(v6, { to: '::/0', alone: '/128' }),
    ...routes.map(({ to, via }) => ({ to, via })),
  ];
  return {
    dhcp4: v4.kind === 'dhcp',
    dhcp6: v6.kind === 'dhcp',
    'accept-ra': acceptsAdvertisements(v6),
    // Copies of a template share the machine-id and would get the same address by it.
    ...(v4.kind === 'dhcp' && { 'dhcp-identifier': 'mac' }),
    ...(addresses.length > 0 && { addresses }),
    ...(wanted.length > 0 && { routes: wanted }),
    ...(mtu !== undefined && mtu > 1 && { mtu }),
  };
}

/** A second, advertised gateway would compete with the static one. */
function acceptsAdvertisements(v6: FamilyInput): boolean {
  return v6.kind === 'static' ? v6.gateway === undefined : v6.kind !== 'off';
}

function addressesOf(family: FamilyInput): readonly string[] {
  return family.kind === 'static' ? family.addresses : [];
}

/** The target `default` is not supported by older guests; the CIDR of the whole address space is. */
function defaultRoute(family: FamilyInput, { to, alone }: { to: string; alone: string }) {
  if (family.kind !== 'static' || family.gateway === undefined) return [];
  // An address without a subnet reaches its gateway only if the route is marked on-link.
  const isAlone = family.addresses.every((address) => address.endsWith(alone));
  return [{ to, via: family.gateway, ...(isAlone && { 'on-link': true }) }];
}

function nameServers(dns: readonly string[], search: readonly string[]) {
  if (dns.length === 0 && search.length === 0) return {};
  return {
    nameservers: {
      ...(dns.length > 0 && { addresses: dns }),
      ...(search.length > 0 && { search }),
    },
  };
}
