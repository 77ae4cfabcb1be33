// SPDX-License-Identifier: Apache-2.0
// The options of `vm create`, as a request to the fleet.
import { type Config, type IpAddress, parseIpAddress, subnetOf } from '../config/index.ts';
import type { VmsRequest } from '../fleet/index.ts';
import type { HostRef, MachineSize } from '../model/machine.ts';
import { parsePoolName } from '../model/names.ts';
import { parseQuantity, wholeValue } from '../model/quantity.ts';
import { TEMPLATE_ROLE, type VmNetwork, type VmRequest, type VmSource } from '../model/role.ts';
import { InvalidRequest } from '../ports/errors.ts';

export interface VmOptions {
  readonly role: string;
  readonly size?: string;
  readonly cpus?: string;
  readonly memory?: string;
  readonly disk?: string;
  readonly network: 'dhcp' | 'static';
  readonly ip?: string;
  readonly gateway?: string;
  readonly dns?: string;
  readonly vmid?: string;
  readonly host?: string;
  readonly region?: string;
  readonly strategy?: string;
  readonly count: string;
  readonly from?: string;
  readonly clone?: 'full' | 'linked';
  readonly reason: string;
}

/** Hosts of all regions that were read, to find the region of `--host`. */
export type KnownHosts = readonly HostRef[];

export function parseVmOptions(config: Config, options: VmOptions, hosts: KnownHosts): VmsRequest {
  const count = parseNumber('--count', options.count, { min: 1, max: 1_000 });
  const vmId =
    options.vmid === undefined
      ? undefined
      : parseNumber('--vmid', options.vmid, { min: 100, max: 999_999_999 });
  const network = parseNetwork(options);
  requireSingle(count, { '--vmid': vmId, '--ip': options.ip });
  const host = findHost(options, hosts);
  const region = options.region ?? host?.region;
  if (region !== undefined) requireRegion(config, region);
  const vm: VmRequest = {
    from: parseSource(config, options),
    ...(region !== undefined && { regions: [region] }),
    ...(vmId !== undefined && { vmId }),
    ...(options.strategy !== undefined && { strategy: options.strategy }),
    ...(network.kind === 'static' && { network }),
  };
  const role = parseRole(options.role);
  const size = parseSize(config, options);
  return { by: 'cli', reason: options.reason, role, count, size, host, vm };
}

/** Most characters of a role, so that `k8s-<role>-99999` is a host name for any usual prefix. */
const MAX_ROLE_LENGTH = 30;

function parseRole(text: string): string {
  const role = parsePoolName(text);
  if (!role.ok) throw usage(`--role ${role.problem}`);
  if (text.length > MAX_ROLE_LENGTH) throw usage(`--role is longer than ${MAX_ROLE_LENGTH}`);
  if (text === TEMPLATE_ROLE) throw usage(`--role ${text} is for pvescaler template build`);
  return text;
}

function parseSize(config: Config, options: VmOptions): MachineSize {
  const sizes = config.vms.sizesByName;
  const name = options.size ?? 'small';
  const named = Object.hasOwn(sizes, name) ? sizes[name] : undefined;
  if (named === undefined)
    throw usage(`--size ${name}: there is no such size; use ${Object.keys(sizes).join(', ')}`);
  const { cpus, memory, disk } = options;
  return {
    cpu: cpus === undefined ? named.cpu : parseNumber('--cpus', cpus, { min: 1, max: 8_192 }),
    memoryBytes: memory === undefined ? named.memoryBytes : parseMemory(memory),
    diskBytes: disk === undefined ? named.diskBytes : parseDisk(disk),
  };
}

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const MIN_MEMORY_BYTES = 64 * MIB;

/** A plain number is in MB, as Proxmox counts memory. */
function parseMemory(text: string): number {
  const bytes = parseAmount('--memory', text, MIB);
  if (bytes < MIN_MEMORY_BYTES) throw usage(`--memory ${text} is less than 64Mi`);
  return Math.ceil(bytes / MIB) * MIB;
}

/** A plain number is in GB, as Proxmox counts disks. */
function parseDisk(text: string): number {
  const bytes = parseAmount('--disk', text, GIB);
  if (bytes < GIB) throw usage(`--disk ${text} is less than 1Gi`);
  return Math.ceil(bytes / GIB) * GIB;
}

function parseAmount(option: string, text: string, unit: number): number {
  if (/^\d{1,9}$/.test(text)) return Number(text) * unit;
  const parsed = parseQuantity(text);
  if (!parsed.ok) throw usage(`${option} ${text}: ${parsed.problem}`);
  const bytes = Number(wholeValue(parsed.value));
  if (!Number.isSafeInteger(bytes) || bytes <= 0) throw usage(`${option} ${text} is not a size`);
  return bytes;
}

function parseNumber(
  option: string,
  text: string,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw usage(`${option} ${text} is not a whole number from ${min} to ${max}`);
}

function parseNetwork({ network, ip, gateway, dns }: VmOptions): VmNetwork {
  const given = Object.entries({ '--ip': ip, '--gateway': gateway, '--dns': dns });
  const [first] = given.filter(([, value]) => value !== undefined);
  if (network === 'dhcp') {
    if (first !== undefined) throw usage(`${first[0]} needs --network static`);
    return { kind: 'dhcp' };
  }
  if (ip === undefined) throw usage('--network static needs --ip, as in --ip 10.0.0.5/24');
  const { address, subnet } = parseCidr(ip);
  if (gateway !== undefined) {
    const parsed = parseAddress('--gateway', gateway);
    if (parsed.text === address.text) throw usage(`--gateway ${gateway} is the address of the VM`);
    // With another one the guest has no network, which would show only when the time for its start is over.
    if (!isLinkLocal(parsed) && !isReachable(subnet, parsed, address))
      throw usage(`--gateway ${gateway} is not in the subnet of --ip ${ip}`);
  }
  const servers = (dns ?? '').split(',').filter((server) => server !== '');
  for (const server of servers) parseAddress('--dns', server);
  return { kind: 'static', address: ip, ...(gateway !== undefined && { gateway }), dns: servers };
}

type Subnet = ReturnType<typeof subnetOf>;

/** An address without a subnet (`/32`) reaches any gateway of its family on the link. */
function isReachable(
  { first, last }: Subnet,
  { family, value }: IpAddress,
  own: IpAddress,
): boolean {
  if (family !== own.family) return false;
  return first === last || (value >= first && value <= last);
}

/** `fe80::/10`: such a router is reached from every subnet. */
function isLinkLocal({ family, value }: IpAddress): boolean {
  return family === 6 && value >> 118n === 0x3fan;
}

function parseCidr(text: string): { readonly address: IpAddress; readonly subnet: Subnet } {
  const [host = '', prefix = '', more] = text.split('/');
  const address = parseAddress('--ip', host);
  const max = address.family === 6 ? 128 : 32;
  const isPrefix = /^\d{1,3}$/.test(prefix) && Number(prefix) >= 1 && Number(prefix) <= max;
  if (!isPrefix || more !== undefined)
    throw usage(`--ip ${text} needs the prefix length of its subnet, as in ${host}/24`);
  const subnet = subnetOf(address, Number(prefix));
  const isReserved = [subnet.first, subnet.last].includes(address.value);
  if (address.family === 4 && Number(prefix) < 31 && isReserved)
    throw usage(`--ip ${text} is the network or broadcast address of its subnet`);
  return { address, subnet };
}

function parseAddress(option: string, text: string): IpAddress {
  const parsed = parseIpAddress(text);
  if (parsed.ok) return parsed.value;
  throw usage(`${option} ${text} is not an IP address`);
}

function parseSource(config: Config, { from, clone }: VmOptions): VmSource {
  const source = from === undefined ? defaultSource(config) : namedSource(config, from);
  if (source.kind === 'template') return { ...source, clone: clone ?? source.clone };
  if (clone !== undefined)
    throw usage(`--clone needs a template, and the source is ${source.kind}`);
  return source;
}

function defaultSource({ vms, images, templates }: Config): VmSource {
  if (vms.defaultSource !== undefined) return vms.defaultSource;
  const all = [
    ...Object.keys(templates).map((name) => `template:${name}`),
    ...Object.keys(images).map((name) => `image:${name}`),
  ];
  if (all.length === 0) {
    throw new InvalidRequest('USAGE', 'the config has no image and no template', {
      hint: 'Add one to images or templates of the config, or use --from netboot.',
    });
  }
  throw usage(`--from is needed, since the config has several sources: ${all.join(', ')}`);
}

function namedSource({ images, templates, vms }: Config, text: string): VmSource {
  const [kind = '', ...rest] = text.split(':');
  const name = rest.join(':');
  if (kind === 'netboot' && name === '') return { kind: 'netboot' };
  if (kind === 'image') return { kind, image: chooseName('image', name, Object.keys(images)) };
  if (kind !== 'template') throw usage(`--from ${text} is none of image, template and netboot`);
  const preferred = vms.defaultSource?.kind === 'template' ? vms.defaultSource : undefined;
  if (name === '' && preferred !== undefined) return preferred;
  return { kind, template: chooseName('template', name, Object.keys(templates)), clone: 'full' };
}

function chooseName(kind: string, name: string, known: readonly string[]): string {
  const [only, another] = known;
  if (only === undefined) throw usage(`the config has no ${kind}`);
  if (name === '' && another === undefined) return only;
  if (known.includes(name)) return name;
  const why = name === '' ? `--from ${kind} needs a name` : `the config has no ${kind} ${name}`;
  throw usage(`${why}: ${known.map((one) => `${kind}:${one}`).join(', ')}`);
}

function findHost({ host, region }: VmOptions, hosts: KnownHosts): HostRef | undefined {
  if (host === undefined) return undefined;
  const found = hosts.filter((one) => one.host === host && one.region === (region ?? one.region));
  const [first, second] = found;
  if (first === undefined) {
    const names = hosts.map((one) => one.host).join(', ');
    throw usage(`--host ${host}: there is no such host; there are ${names}`);
  }
  if (second === undefined) return first;
  throw usage(`--host ${host} is in several regions; add --region`);
}

function requireRegion({ regions }: Config, name: string): void {
  if (Object.hasOwn(regions, name)) return;
  throw usage(`--region ${name}: the config has ${Object.keys(regions).join(', ')}`);
}

function requireSingle(count: number, options: Readonly<Record<string, unknown>>): void {
  const [given] = Object.entries(options).find(([, value]) => value !== undefined) ?? [];
  if (count > 1 && given !== undefined) throw usage(`${given} is for one VM, not for ${count}`);
}

function usage(message: string): InvalidRequest {
  return new InvalidRequest('USAGE', message, {
    hint: 'Run pvescaler vm create --help for all options.',
  });
}
