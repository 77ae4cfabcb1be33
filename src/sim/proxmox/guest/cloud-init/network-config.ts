// SPDX-License-Identifier: Apache-2.0
// network-config, versions 1 and 2, into plans for network cards. What is not modelled is a warning.
import {
  isRecord,
  isTruthy,
  listOf,
  type PlainRecord,
  recordOf,
  textOf,
  textsOf,
} from '../plain-values.ts';
import type { NicPlan } from '../system/network.ts';

export interface NetworkResult {
  /** Undefined: there is no usable network-config, the guest falls back to DHCP. */
  readonly plans: readonly NicPlan[] | undefined;
  readonly warnings: readonly string[];
}

export function readNetworkConfig(value: unknown): NetworkResult {
  const outer = recordOf(value);
  const config = isRecord(outer['network']) ? outer['network'] : outer;
  const version = Number(textOf(config['version']) ?? Number.NaN);
  if (version === 1) return versionOne(config);
  if (version === 2) return versionTwo(config);
  const isEmpty = Object.keys(outer).length === 0;
  return { plans: undefined, warnings: isEmpty ? [] : ['network-config: unknown version'] };
}

function versionOne(config: PlainRecord): NetworkResult {
  const entries = listOf(config['config']).filter(isRecord);
  const servers = entries.filter((entry) => entry['type'] === 'nameserver');
  const dns = {
    nameservers: servers.flatMap((entry) => textsOf(entry['address'])),
    searchDomains: servers.flatMap((entry) => textsOf(entry['search'])),
  };
  const warnings = entries
    .filter((entry) => !['nameserver', 'physical', 'route'].includes(textOf(entry['type']) ?? ''))
    .map((entry) => `network-config: type ${textOf(entry['type']) ?? '?'} is not modelled`);
  const physical = entries.filter((entry) => entry['type'] === 'physical');
  return { plans: physical.map((entry) => physicalPlan(entry, dns)), warnings };
}

interface Dns {
  readonly nameservers: readonly string[];
  readonly searchDomains: readonly string[];
}

function physicalPlan(entry: PlainRecord, dns: Dns): NicPlan {
  const subnets = listOf(entry['subnets']).filter(isRecord);
  const fixed = subnets.filter((subnet) => (textOf(subnet['type']) ?? '').startsWith('static'));
  const gateway = textsOf(fixed.map((subnet) => subnet['gateway']))[0];
  return {
    ...(textOf(entry['mac_address']) === undefined
      ? optional('name', textOf(entry['name']))
      : optional('mac', textOf(entry['mac_address']))),
    ...optional('setName', textOf(entry['name'])),
    ...optional('gateway', gateway),
    dhcp4: subnets.some((subnet) => /^dhcp4?$/.test(textOf(subnet['type']) ?? '')),
    addresses: fixed.map(subnetAddress).filter((address) => address !== ''),
    nameservers: [
      ...subnets.flatMap((subnet) => textsOf(subnet['dns_nameservers'])),
      ...dns.nameservers,
    ],
    searchDomains: [
      ...subnets.flatMap((subnet) => textsOf(subnet['dns_search'])),
      ...dns.searchDomains,
    ],
  };
}

function subnetAddress(subnet: PlainRecord): string {
  const address = textOf(subnet['address']) ?? '';
  const netmask = textOf(subnet['netmask']);
  return address.includes('/') || netmask === undefined
    ? address
    : `${address}/${prefixOf(netmask)}`;
}

function prefixOf(netmask: string): number {
  if (/^\d+$/.test(netmask)) return Number(netmask);
  const bits = netmask.split('.').map((octet) => Number(octet).toString(2));
  return Array.from(bits.join('')).filter((bit) => bit === '1').length;
}

const VERSION_TWO_KEYS = ['version', 'renderer', 'ethernets'];

function versionTwo(config: PlainRecord): NetworkResult {
  const warnings = Object.keys(config)
    .filter((key) => !VERSION_TWO_KEYS.includes(key))
    .map((key) => `network-config: ${key} are not modelled`);
  const ethernets = Object.entries(recordOf(config['ethernets']));
  return { plans: ethernets.map(([id, nic]) => ethernetPlan(id, recordOf(nic))), warnings };
}

function ethernetPlan(id: string, nic: PlainRecord): NicPlan {
  const match = recordOf(nic['match']);
  const mac = textOf(match['macaddress']);
  const dns = recordOf(nic['nameservers']);
  const gateway = textOf(nic['gateway4']) ?? defaultRoute(nic);
  return {
    ...(mac === undefined ? { name: textOf(match['name']) ?? id } : { mac }),
    ...optional('setName', textOf(nic['set-name'])),
    ...optional('gateway', gateway),
    dhcp4: isTruthy(nic['dhcp4']),
    addresses: listOf(nic['addresses']).flatMap(addressesOf),
    nameservers: textsOf(dns['addresses']),
    searchDomains: textsOf(dns['search']),
  };
}

/** A text, or a record with the address as its only key and options as the value. */
function addressesOf(value: unknown): string[] {
  return isRecord(value) ? Object.keys(value) : textsOf(value);
}

function defaultRoute(nic: PlainRecord): string | undefined {
  const routes = listOf(nic['routes']).filter(isRecord);
  const route = routes.find((each) => /^(default|0\.0\.0\.0\/0)$/.test(textOf(each['to']) ?? ''));
  return textOf(route?.['via']);
}

function optional<K extends 'mac' | 'name' | 'setName' | 'gateway'>(
  key: K,
  value: string | undefined,
): { readonly [P in K]?: string } {
  const found: { [P in K]?: string } = {};
  if (value !== undefined) found[key] = value;
  return found;
}
