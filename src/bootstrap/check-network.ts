// SPDX-License-Identifier: Apache-2.0
import { parseDnsSubdomain } from '../model/dns-name.ts';
import { type Family, isAddress, isCidr } from './addresses.ts';
import type { FamilyInput, InterfaceInput, NetworkInput, RouteInput } from './seed-input.ts';

const MAC = /^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$/;

export function networkProblem({ interfaces, dns, search }: NetworkInput): string | undefined {
  if (interfaces.length === 0) return 'the machine has no network interface';
  const macs = interfaces.map(({ mac }) => mac.toLowerCase());
  const duplicate = macs.find((mac, index) => macs.indexOf(mac) !== index);
  if (duplicate !== undefined) return `MAC address '${duplicate}' is used twice`;
  const server = dns.find((each) => !isAddress(each, 4) && !isAddress(each, 6));
  if (server !== undefined) return `name server '${server}' is not an IP address`;
  const domain = search.find((each) => !parseDnsSubdomain(each.toLowerCase()).ok);
  if (domain !== undefined) return `search domain '${domain}' is not a domain`;
  return firstProblem(interfaces, interfaceProblem);
}

function interfaceProblem({ mac, mtu, v4, v6, routes }: InterfaceInput): string | undefined {
  if (!MAC.test(mac)) return `'${mac}' is not a MAC address`;
  if (mtu !== undefined && !(Number.isInteger(mtu) && mtu >= 1 && mtu <= 65_520)) {
    return `MTU ${mtu} is not between 1 and 65520`;
  }
  if (v4.kind === 'auto') return 'IPv4 does not support router advertisements';
  return familyProblem(v4, 4) ?? familyProblem(v6, 6) ?? firstProblem(routes, routeProblem);
}

function familyProblem(input: FamilyInput, family: Family): string | undefined {
  if (input.kind !== 'static') return undefined;
  if (input.addresses.length === 0) return `static IPv${family} needs an address`;
  const address = input.addresses.find((each) => !isCidr(each, family));
  if (address !== undefined) return `'${address}' is not an IPv${family} address with a prefix`;
  const { gateway } = input;
  if (gateway === undefined || isAddress(gateway, family)) return undefined;
  return `gateway '${gateway}' is not an IPv${family} address`;
}

function routeProblem({ to, via }: RouteInput): string | undefined {
  const isRoute = ([4, 6] as const).some((family) => isCidr(to, family) && isAddress(via, family));
  return isRoute ? undefined : `'${to}' via '${via}' is not a valid route`;
}

function firstProblem<T>(
  values: readonly T[],
  problemOf: (value: T) => string | undefined,
): string | undefined {
  return values.map(problemOf).find((problem) => problem !== undefined);
}
