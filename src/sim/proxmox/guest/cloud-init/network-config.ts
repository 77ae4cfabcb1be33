// SPDX-License-Identifier: Apache-2.0
// Reads network-config versions 1 and 2 into plans for network cards. Unsupported entries give a warning.

import type { NicPlan } from '../system/network.ts';
import {
  asList,
  asRecord,
  asText,
  asTexts,
  isRecord,
  isTruthy,
  type PlainRecord,
} from '../untyped-values.ts';

export interface NetworkConfigResult {
  /** Undefined without a usable network-config; the guest then uses DHCP. */
  readonly plans: readonly NicPlan[] | undefined;
  readonly warnings: readonly string[];
}

export function readNetworkConfig(value: unknown): NetworkConfigResult {
  const outer = asRecord(value);
  const config = isRecord(outer['network']) ? outer['network'] : outer;
  const version = Number(asText(config['version']) ?? Number.NaN);
  if (version === 1) return readVersion1(config);
  if (version === 2) return readVersion2(config);
  const isEmpty = Object.keys(outer).length === 0;
  return { plans: undefined, warnings: isEmpty ? [] : ['network-config: unknown version'] };
}

function readVersion1(config: PlainRecord): NetworkConfigResult {
  const entries = asList(config['config']).filter(isRecord);
  const servers = entries.filter((entry) => entry['type'] === 'nameserver');
  const dns = {
    nameservers: servers.flatMap((entry) => asTexts(entry['address'])),
    searchDomains: servers.flatMap((entry) => asTexts(entry['search'])),
  };
  const warnings = entries
    .filter((entry) => !['nameserver', 'physical', 'route'].includes(asText(entry['type']) ?? ''))
    .map((entry) => `network-config: type ${asText(entry['type']) ?? '?'} is not simulated`);
  const physical = entries.filter((entry) => entry['type'] === 'physical');
  return { plans: physical.map((entry) => planPhysical(entry, dns)), warnings };
}

interface Dns {
  readonly nameservers: readonly string[];
  readonly searchDomains: readonly string[];
}

function planPhysical(entry: PlainRecord, dns: Dns): NicPlan {
  const subnets = asList(entry['subnets']).filter(isRecord);
  const fixed = subnets.filter((subnet) => (asText(subnet['type']) ?? '').startsWith('static'));
  const gateway = asTexts(fixed.map((subnet) => subnet['gateway']))[0];
  return {
    ...(asText(entry['mac_address']) === undefined
      ? optionalField('name', asText(entry['name']))
      : optionalField('mac', asText(entry['mac_address']))),
    ...optionalField('setName', asText(entry['name'])),
    ...optionalField('gateway', gateway),
    dhcp4: subnets.some((subnet) => /^dhcp4?$/.test(asText(subnet['type']) ?? '')),
    addresses: fixed.map(formatSubnetAddress).filter((address) => address !== ''),
    nameservers: [
      ...subnets.flatMap((subnet) => asTexts(subnet['dns_nameservers'])),
      ...dns.nameservers,
    ],
    searchDomains: [
      ...subnets.flatMap((subnet) => asTexts(subnet['dns_search'])),
      ...dns.searchDomains,
    ],
  };
}

function formatSubnetAddress(subnet: PlainRecord): string {
  const address = asText(subnet['address']) ?? '';
  const netmask = asText(subnet['netmask']);
  return address.includes('/') || netmask === undefined
    ? address
    : `${address}/${netmaskToPrefix(netmask)}`;
}

function netmaskToPrefix(netmask: string): number {
  if (/^\d+$/.test(netmask)) return Number(netmask);
  const bits = netmask.split('.').map((octet) => Number(octet).toString(2));
  return Array.from(bits.join('')).filter((bit) => bit === '1').length;
}

const VERSION_2_KEYS = ['version', 'renderer', 'ethernets'];

function readVersion2(config: PlainRecord): NetworkConfigResult {
  const warnings = Object.keys(config)
    .filter((key) => !VERSION_2_KEYS.includes(key))
    .map((key) => `network-config: ${key} are not simulated`);
  const ethernets = Object.entries(asRecord(config['ethernets']));
  return { plans: ethernets.map(([id, nic]) => planEthernet(id, asRecord(nic))), warnings };
}

function planEthernet(id: string, nic: PlainRecord): NicPlan {
  const match = asRecord(nic['match']);
  const mac = asText(match['macaddress']);
  const dns = asRecord(nic['nameservers']);
  const gateway = asText(nic['gateway4']) ?? findDefaultGateway(nic);
  return {
    ...(mac === undefined ? { name: asText(match['name']) ?? id } : { mac }),
    ...optionalField('setName', asText(nic['set-name'])),
    ...optionalField('gateway', gateway),
    dhcp4: isTruthy(nic['dhcp4']),
    addresses: asList(nic['addresses']).flatMap(readAddresses),
    nameservers: asTexts(dns['addresses']),
    searchDomains: asTexts(dns['search']),
  };
}

/** An address is a string, or a mapping from the address to its options. */
function readAddresses(value: unknown): string[] {
  return isRecord(value) ? Object.keys(value) : asTexts(value);
}

function findDefaultGateway(nic: PlainRecord): string | undefined {
  const routes = asList(nic['routes']).filter(isRecord);
  const route = routes.find((each) => /^(default|0\.0\.0\.0\/0)$/.test(asText(each['to']) ?? ''));
  return asText(route?.['via']);
}

function optionalField<K extends 'mac' | 'name' | 'setName' | 'gateway'>(
  key: K,
  value: string | undefined,
): { readonly [P in K]?: string } {
  const found: { [P in K]?: string } = {};
  if (value !== undefined) found[key] = value;
  return found;
}
