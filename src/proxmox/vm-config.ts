// SPDX-License-Identifier: Apache-2.0
import type { BootDisk, VmConfig, VmRef } from '../ports/hypervisor.ts';
import { asBoolean, asNumber, asObject, asText } from './wire-values.ts';

const MEBIBYTE = 2 ** 20;
/** The default of Proxmox for a configuration without `memory`. */
const DEFAULT_MEMORY_MEBIBYTES = 512;

export interface ParsedVmConfig {
  readonly config: VmConfig;
  /** Every option as Proxmox stores it. */
  readonly options: VmOptions;
}

export function parseVmConfig(vm: VmRef, data: unknown): ParsedVmConfig {
  const { digest, ...stored } = asObject(data);
  const options: Record<string, string> = {};
  for (const [name, value] of Object.entries(stored)) {
    const text = asText(value);
    if (text !== undefined) options[name] = text;
  }
  return { config: buildVmConfig(vm, asText(digest) ?? '', options), options };
}

function buildVmConfig(vm: VmRef, digest: string, options: VmOptions): VmConfig {
  return {
    vmId: vm.vmId,
    host: vm.host,
    digest,
    name: options['name'],
    description: options['description']?.replace(/\s+$/, ''),
    tags: parseTags(options['tags']),
    smbiosUuid: parseSmbiosUuid(options['smbios1']),
    lock: options['lock'],
    isBeingCreated: isCreationLock(options['lock']),
    isProtected: asBoolean(options['protection']),
    isTemplate: asBoolean(options['template']),
    cpus: countCpus(options),
    memoryBytes: parseMemoryMebibytes(options['memory']) * MEBIBYTE,
    bootDisk: parseBootDisk(options),
    seedVolume: findSeedVolume(options),
    addresses: parseAddresses(options),
  };
}

/**
 * Only the lock shows that a create or clone task is in progress. A clone already has its final description once its
 * first disk is copied, but Proxmox still removes the VM if the task fails.
 */
export function isCreationLock(lock: string | undefined): boolean {
  return lock === 'create' || lock === 'clone';
}

/** Sorts and lower-cases the tags, as Proxmox does unless the data center's tag style differs. */
export function parseTags(text: string | undefined): readonly string[] {
  const tags = (text ?? '').split(/[;,\s]+/).filter((tag) => tag !== '');
  return [...new Set(tags.map((tag) => tag.toLowerCase()))].sort();
}

function parseSmbiosUuid(smbios1: string | undefined): string | undefined {
  return parseProperties(smbios1 ?? '', 'uuid')
    .get('uuid')
    ?.toLowerCase();
}

/** `vcpus` limits how many of the cores are plugged in. */
function countCpus(options: VmOptions): number {
  const cores = (asNumber(options['cores']) ?? 1) * (asNumber(options['sockets']) ?? 1);
  return Math.min(cores, asNumber(options['vcpus']) ?? cores);
}

/** Accepts `2048` and, since 8.1, `current=2048`. */
function parseMemoryMebibytes(memory: string | undefined): number {
  return (
    asNumber(parseProperties(memory ?? '', 'current').get('current')) ?? DEFAULT_MEMORY_MEBIBYTES
  );
}

function parseAddresses(options: VmOptions): readonly string[] {
  return Object.keys(options)
    .filter((name) => /^ipconfig\d+$/.test(name))
    .sort((a, b) => Number(a.slice('ipconfig'.length)) - Number(b.slice('ipconfig'.length)))
    .flatMap((name) => {
      const properties = parseProperties(options[name] ?? '', 'ip');
      return [properties.get('ip'), properties.get('ip6')];
    })
    .filter((address) => address?.includes('/') === true)
    .flatMap((address) => address ?? []);
}

// Drives in a VM configuration, for example `scsi0: local-lvm:vm-100-disk-0,size=3G`, and disk sizes.

/** All options of a VM by name: `scsi0`, `net0`, `ide2`, … */
export type VmOptions = Readonly<Record<string, string>>;

/** The drive to which the seed ISO is attached. */
export const SEED_DRIVE = 'ide2';
export const EMPTY_CD_DRIVE = 'none,media=cdrom';

const DRIVE = /^(?:ide|sata|scsi|virtio)\d+$/;
const CLOUD_INIT = /^[^,]*[:/](?:vm-\d+-)?cloudinit(?:\.\w+)?(?:,|$)/;
/** The base of a linked clone is part of its volume id, except on LVM-thin, where a clone does not need it any more. */
const LINKED = /[:/]base-(\d+)-[^/,]+\//;
const ISO = /^[^:,]+:iso\/[^,]+/;

/** Returns the name of the boot drive: the first disk in the boot order, or the first disk with a common name. */
export function findBootDrive(options: VmOptions): string | undefined {
  const ordered = /order=([^,]+)/.exec(options['boot'] ?? '')?.[1]?.split(';') ?? [];
  return [...ordered, 'scsi0', 'virtio0', 'sata0', 'ide0'].find((name) => isDisk(name, options));
}

function isDisk(name: string, options: VmOptions): boolean {
  const stored = options[name];
  return DRIVE.test(name) && stored !== undefined && !stored.includes('media=cdrom');
}

function parseBootDisk(options: VmOptions): BootDisk | undefined {
  const stored = options[findBootDrive(options) ?? ''];
  if (stored === undefined) return undefined;
  const [, base] = LINKED.exec(stored) ?? [];
  return {
    storage: stored.split(':')[0] ?? '',
    bytes: parseDriveBytes(stored) ?? 0,
    ...(base !== undefined && { baseVmId: Number(base) }),
  };
}

export function parseDriveBytes(stored: string): number | undefined {
  return parseDiskSize(parseProperties(stored, 'file').get('size') ?? '');
}

function findSeedVolume(options: VmOptions): string | undefined {
  return ISO.exec(options[SEED_DRIVE] ?? '')?.[0];
}

export function formatSeedDrive(volumeId: string): string {
  return `${volumeId},media=cdrom`;
}

/** Finds drives with a cloud-init seed generated by Proxmox. With two seeds it is undefined which of them the guest reads. */
export function findCloudInitDrives(options: VmOptions): readonly string[] {
  return Object.keys(options)
    .filter((name) => DRIVE.test(name) && CLOUD_INIT.test(options[name] ?? ''))
    .sort();
}

const UNIT_BYTES: Readonly<Record<string, number>> = {
  '': 1,
  K: 2 ** 10,
  M: 2 ** 20,
  G: 2 ** 30,
  T: 2 ** 40,
};

/** Parses the `size` property of a disk: `32G`, `2252M`, `1.5T`. */
export function parseDiskSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([KMGT]?)$/.exec(text);
  if (match === null) return undefined;
  return Math.round(Number(match[1]) * (UNIT_BYTES[match[2] ?? ''] ?? 1));
}

/** Rounds up to whole mebibytes; uses G where the size is a multiple of 1 GiB. */
export function formatDiskSize(bytes: number): string {
  const mebibytes = Math.ceil(bytes / 2 ** 20);
  return mebibytes % 1024 === 0 ? `${mebibytes / 1024}G` : `${mebibytes}M`;
}

// Property strings: several properties in one option, `virtio,bridge=vmbr0,tag=12`. One part may omit its key (the model of
// a network card, the volume of a disk); the caller passes this default key.

type Properties = ReadonlyMap<string, string>;

export function parseProperties(text: string, defaultKey: string): Properties {
  const properties = new Map<string, string>();
  for (const part of text.split(',')) {
    const equals = part.indexOf('=');
    if (equals > 0) properties.set(part.slice(0, equals).trim(), part.slice(equals + 1));
    else if (part.trim() !== '') properties.set(defaultKey, part.trim());
  }
  return properties;
}

/** `head` comes first, without a key. Undefined values are omitted; booleans become 1 and 0. */
export function formatProperties(
  head: string | undefined,
  properties: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const parts = Object.entries(properties).flatMap(([key, value]) => {
    if (value === undefined) return [];
    return [`${key}=${typeof value === 'boolean' ? Number(value) : value}`];
  });
  return (head === undefined ? parts : [head, ...parts]).join(',');
}
