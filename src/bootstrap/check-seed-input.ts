// SPDX-License-Identifier: Apache-2.0
// Validates input that would break a seed or silently create a different machine than requested.
import { parseDnsSubdomain } from '../model/names.ts';
import { isWellFormed } from './format-yaml.ts';
import type { GuestFile } from './guest-file.ts';
import { proxyProblem } from './proxy.ts';
import type {
  ExtraFile,
  FamilyInput,
  GuestExtras,
  InterfaceInput,
  LoginInput,
  MachineInput,
  NetworkInput,
  RouteInput,
} from './seed-input.ts';

/** The limit of Linux host names. */
const MAX_HOST_NAME_LENGTH = 64;

export function machineProblem({ name, vmId, region }: MachineInput): string | undefined {
  const checked = parseDnsSubdomain(name);
  if (!checked.ok) return `machine name '${name}' ${checked.problem}`;
  if (name.length > MAX_HOST_NAME_LENGTH) {
    return `machine name '${name}' is longer than ${MAX_HOST_NAME_LENGTH} characters`;
  }
  if (!Number.isInteger(vmId) || vmId < 100) return `${vmId} is not a VM id`;
  return /^[^\s/]+$/.test(region) ? undefined : `'${region}' is not a region`;
}

export function loginProblem({ user, publicKeys }: LoginInput): string | undefined {
  if (!/^[a-z_][a-z0-9_-]{0,31}$/.test(user)) return `'${user}' is not a user name`;
  // One line per key; a line break would add a second entry.
  const isKey = (key: string) =>
    /^\S+ [A-Za-z0-9+/=]+( [\x20-\x7e\u00a1-\ud7ff]*)?$/.test(key.trim());
  return publicKeys.every(isKey) ? undefined : 'an SSH public key must be one line of a key file';
}

export function extrasProblem({ packages, files, proxy }: GuestExtras): string | undefined {
  const odd = packages.find((name) => !/^[A-Za-z0-9][A-Za-z0-9+._:=~-]*$/.test(name));
  if (odd !== undefined) return `'${odd}' is not a package name`;
  return files.map(fileProblem).find((problem) => problem !== undefined) ?? proxyProblem(proxy);
}

function fileProblem({ path, content, permissions }: ExtraFile): string | undefined {
  const isPath = /^\/[\x20-\x2e\x30-\x7e]+(\/[\x20-\x2e\x30-\x7e]+)*$/.test(path);
  if (!isPath || /\/\.\.?(\/|$)/.test(path)) {
    return `'${path}' is not an absolute path in the guest`;
  }
  if (!/^0?[0-7]{3,4}$/.test(permissions)) return `'${permissions}' is not an octal mode (${path})`;
  return isWellFormed(content) ? undefined : `the content of '${path}' contains invalid Unicode`;
}

export function toGuestFile({ path, content, permissions }: ExtraFile): GuestFile {
  return { path, content, mode: permissions.replace(/^0+(?=[0-7]{3})/, '').padStart(4, '0') };
}

/** Of two files with the same path one would silently be lost. */
export function duplicatePathProblem(files: readonly GuestFile[]): string | undefined {
  const paths = files.map(({ path }) => path);
  const duplicate = paths.find((path, index) => paths.indexOf(path) !== index);
  return duplicate === undefined ? undefined : `two files have the path '${duplicate}'`;
}

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

// Validation of IP addresses that are written into a guest.

const OCTET = '(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const V4 = new RegExp(`^${OCTET}(\\.${OCTET}){3}$`);

type Family = 4 | 6;

function isAddress(text: string, family: Family): boolean {
  return family === 4 ? V4.test(text) : isV6(text);
}

/** Uses the IPv6 parser of the URL standard. */
function isV6(text: string): boolean {
  return /^[0-9A-Fa-f:.]+$/.test(text) && text.includes(':') && URL.canParse(`http://[${text}]/`);
}

/** `address/prefix`. */
function isCidr(text: string, family: Family): boolean {
  const [address = '', prefix = '', ...more] = text.split('/');
  const longest = family === 4 ? 32 : 128;
  const isPrefix = /^(0|[1-9]\d{0,2})$/.test(prefix) && Number(prefix) <= longest;
  return more.length === 0 && isPrefix && isAddress(address, family);
}
