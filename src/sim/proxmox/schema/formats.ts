// SPDX-License-Identifier: Apache-2.0
// Named formats: the regular expressions of the table, and verifiers for formats that need code. Every verifier
// throws an Error whose message ends in a newline, as on the wire.
import { isIPv4, isIPv6 as isIPv6WithZone } from 'node:net';
import { builtInRoles, INDEX_RANGES, NAMED_FORMATS } from '../../../proxmox/wire-facts/index.ts';

type Verifier = (value: string) => void;

/** Without a zone, as in `fe80::1%eth0`. */
const isIPv6 = (value: string) => isIPv6WithZone(value) && !value.includes('%');
const isIP = (value: string) => isIPv4(value) || isIPv6(value);

function throwFormatError(text: string): never {
  throw new Error(`${text}\n`);
}

function isCidr(value: string, family: 4 | 6): boolean {
  const match = /^([^/]+)\/(\d+)$/.exec(value);
  const [, address = '', bits = ''] = match ?? [];
  const rightFamily = family === 4 ? isIPv4(address) : isIPv6(address);
  return rightFamily && Number(bits) > 7 && Number(bits) <= (family === 4 ? 32 : 128);
}

function verifyStartup(value: string): void {
  const parts = value.split(',').filter((part) => part.trim() !== '');
  const good = parts.every((part) => /^(?:(?:order=)?\d+|up=\d+|down=\d+)$/.test(part));
  if (value === '' || value === '0' || !good) throwFormatError('unable to parse startup options');
}

function verifyVlan(value: string): void {
  const match = /^(\d+)(?:-(\d+))?$/.exec(value);
  if (match === null) return throwFormatError(`invalid VLAN configuration '${value}'`);
  const numbers = [match[1], match[2]].filter((text) => text !== undefined).map(Number);
  for (const tag of numbers)
    if (tag < 2 || tag > 4094) throwFormatError(`invalid VLAN tag '${tag}'`);
  const [start = 0, end] = numbers;
  if (end !== undefined && start >= end) {
    throwFormatError(`VLAN range must go from lower to higher tag '${value}'`);
  }
}

const DRIVE = /^(ide|sata|scsi|virtio)(\d+)$/;

/** `scsi0`, `ide2`, `efidisk0`: whether the option is a drive. */
export function isDriveName(name: string): boolean {
  if (name === 'efidisk0' || name === 'tpmstate0') return true;
  const match = DRIVE.exec(name);
  return match !== null && Number(match[2]) <= (INDEX_RANGES[match[1] ?? ''] ?? -1);
}

function isBootDevice(name: string): boolean {
  if (name === 'efidisk0' || name === 'tpmstate0') return false;
  const [, stem = '', index] = /^(net|usb|hostpci)(\d+)$/.exec(name) ?? [];
  return isDriveName(name) || Number(index) <= (INDEX_RANGES[stem] ?? -1);
}

function verifyVolumeId(value: string): void {
  namedFormatVerifier('pve-volume-id')(value);
}

/** Perl's `$` also matches before a line break at the end. */
function matches(regex: RegExp, value: string): boolean {
  return regex.test(value) || (value.endsWith('\n') && regex.test(value.slice(0, -1)));
}

function namedFormatVerifier(name: string): Verifier {
  const fact = NAMED_FORMATS[name];
  return (value) => {
    if (fact === undefined || matches(fact.regex, value)) return;
    throwFormatError(fact.error.trimEnd().replaceAll('<value>', value));
  };
}

function verifyStorageId(value: string): void {
  if (value.length < 2)
    throwFormatError(`storage ID '${value}' cannot be shorter than 2 characters`);
  namedFormatVerifier('pve-storage-id')(value);
}

function verifyPoolId(value: string): void {
  if (value.replace(/\/+$/, '').split('/').length > 3)
    throwFormatError(`pool name '${value}' nested too deeply (max levels = 3)`);
  namedFormatVerifier('pve-poolid')(value);
}

function verifyPair(verify: Verifier): Verifier {
  return (value) => {
    if (value === '1' || value === '0') return;
    const [, source, target] = /^([^:]+):([^:]+)$/.exec(value) ?? [];
    const ids = source === undefined || target === undefined ? [value] : [source, target];
    try {
      for (const id of ids) verify(id);
    } catch (error) {
      const cause = error instanceof Error ? error.message : '';
      throwFormatError(`entry '${value}' contains invalid ID - ${cause}\n`);
    }
  };
}

function anyOf(error: string, ...tests: readonly ((value: string) => boolean)[]): Verifier {
  return (value) => {
    if (!tests.some((test) => test(value))) throwFormatError(error.replaceAll('<value>', value));
  };
}

/** `0-3,8`; trailing commas are ignored. */
function isCpuSet(value: string): boolean {
  const parts = value.replace(/,+$/, '');
  if (parts === '') return true;
  return parts.split(',').every((part) => {
    const match = /^\s*(\d+)(?:-(\d+))?\s*$/.exec(part);
    return match !== null && Number(match[2] ?? match[1]) >= Number(match[1]);
  });
}

const isDnsName = (value: string) => NAMED_FORMATS['dns-name']?.regex.test(value) === true;
/** Of any release; the call checks the names of its own. */
const PRIVILEGE_NAMES = new Set(
  (['8.4', '9.2'] as const).flatMap((version) => builtInRoles(version)['Administrator'] ?? []),
);
const HOTPLUG = /^(?:network|disk|cpu|memory|usb|cloudinit)$/;

const CODED_VERIFIERS: Readonly<Record<string, Verifier>> = {
  ipv4: anyOf('value does not look like a valid IPv4 address', isIPv4),
  ipv6: anyOf('value does not look like a valid IPv6 address', isIPv6),
  ip: anyOf('value does not look like a valid IP address', isIP),
  CIDRv4: anyOf('value does not look like a valid IPv4 CIDR network', (v) => isCidr(v, 4)),
  CIDRv6: anyOf('value does not look like a valid IPv6 CIDR network', (v) => isCidr(v, 6)),
  CIDR: anyOf(
    'value does not look like a valid CIDR network',
    (v) => isCidr(v, 4),
    (v) => isCidr(v, 6),
  ),
  'pve-ipv4-config': anyOf(
    'value does not look like a valid ipv4 network configuration',
    (v) => v === 'dhcp' || v === 'manual',
    (v) => isCidr(v, 4),
  ),
  'pve-ipv6-config': anyOf(
    'value does not look like a valid ipv6 network configuration',
    (v) => v === 'auto' || v === 'dhcp' || v === 'manual',
    (v) => isCidr(v, 6),
  ),
  address: anyOf('value does not look like a valid address: <value>', isIP, isDnsName),
  'pve-storage-id': verifyStorageId,
  'pve-poolid': verifyPoolId,
  'pve-priv': anyOf("invalid privilege '<value>'", (v) => PRIVILEGE_NAMES.has(v)),
  'pve-startup-order': verifyStartup,
  'pve-vlan-id-or-range': verifyVlan,
  'storage-pair': verifyPair(verifyStorageId),
  'bridge-pair': verifyPair(namedFormatVerifier('pve-bridge-id')),
  'pve-qm-bootdisk': anyOf("invalid boot disk '<value>'", isDriveName),
  'pve-qm-bootdev': anyOf("invalid boot device '<value>'", isBootDevice),
  'pve-hotplug-features': (value) => {
    if (value === '0' || value === '1') return;
    for (const part of splitList(value)) {
      if (!HOTPLUG.test(part)) throwFormatError(`invalid hotplug feature '${part}'`);
    }
  },
  'pve-volume-id-or-qm-path': (value) => {
    if (value !== 'none' && value !== 'cdrom' && !value.startsWith('/')) verifyVolumeId(value);
  },
  'pve-volume-id-or-absolute-path': (value) => {
    if (!value.startsWith('/')) verifyVolumeId(value);
  },
  'pve-ha-resource-or-vm-id': anyOf('value does not look like a valid ha resource id', (v) =>
    /^(?:(?:vm|ct):)?[1-9][0-9]{2,8}$/.test(v),
  ),
  'pve-storage-path': anyOf('value does not look like a valid absolute path', (v) =>
    /^\/[^;()]/.test(v),
  ),
  'pve-storage-server': anyOf(
    'value does not look like a valid server name or IP address',
    isIP,
    (v) => isDnsName(v),
  ),
  'pve-storage-vgname': anyOf("lvm name '<value>' contains illegal characters", (v) =>
    /^[a-z0-9][a-z0-9\-_.]*[a-z0-9]$/i.test(v),
  ),
  'pve-cpuset': anyOf('unable to parse cpuset option', isCpuSet),
};

/** Splits a list of the API at commas, semicolons, white space or NUL; drops empty entries. */
export function splitList(text: string): string[] {
  // oxlint-disable-next-line no-control-regex -- repeated keys arrive joined by NUL
  return text.split(/[,;\s\0]+/).filter((part) => part !== '');
}

function findVerifier(format: string): Verifier | undefined {
  return (
    CODED_VERIFIERS[format] ?? (format in NAMED_FORMATS ? namedFormatVerifier(format) : undefined)
  );
}

/** Throws when the value does not match the format. Unknown formats accept every value. */
export function verifyFormat(format: string, value: string): void {
  const whole = findVerifier(format);
  if (whole !== undefined) return whole(value);
  const match = /^(.*)-(list|opt)$/.exec(format);
  const verify = findVerifier(match?.[1] ?? '');
  if (verify === undefined) return;
  if (match?.[2] === 'list') {
    for (const part of splitList(value)) verify(part);
  } else if (value !== '' && value !== '0') {
    verify(value);
  }
}
