// SPDX-License-Identifier: Apache-2.0
// Drives and network cards in a VM's options: parses them and formats them as Proxmox does.
import { NEW_DISK } from '../../../proxmox/wire-facts/index.ts';
import { parameterError } from '../api-error.ts';
import { isDriveName } from '../schema/formats.ts';
import { parseProperties, propertyFields } from '../schema/property-string.ts';
import { splitVolumeId } from '../storage/volumes.ts';

export type VmOptions = Readonly<Record<string, string>>;

export interface Drive {
  readonly file: string;
  /** All properties except the file: `size`, `media`, `iothread`, … */
  readonly options: VmOptions;
}

const BOOLEAN_WORDS: Readonly<Record<string, string>> = {
  on: '1',
  yes: '1',
  true: '1',
  off: '0',
  no: '0',
  false: '0',
};

function findDriveFields(slot: string): ReturnType<typeof propertyFields> {
  const stem = slot.replace(/\d+$/, '');
  if (stem === 'efidisk' || stem === 'tpmstate') return propertyFields(`${stem}0`);
  return propertyFields(`${stem}N`);
}

export function parseDrive(slot: string, text: string): Drive {
  const { file = 'none', ...options } = parseProperties(findDriveFields(slot), text);
  return { file, options };
}

export function formatDrive(drive: Drive): string {
  const options = Object.entries(drive.options)
    .filter(([, value]) => value !== '')
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `,${key}=${value}`);
  return `${drive.file}${options.join('')}`;
}

/** All drives of a config, sorted by slot name. */
export function parseDrives(config: VmOptions): readonly (readonly [string, Drive])[] {
  return Object.keys(config)
    .filter((name) => isDriveName(name))
    .toSorted()
    .map((name) => [name, parseDrive(name, config[name] ?? '')] as const);
}

export function isCdrom(drive: Drive): boolean {
  return drive.options['media'] === 'cdrom';
}

/** `STORAGE:cloudinit` in a request, `…vm-100-cloudinit…` afterwards. */
export function isCloudInit(drive: Drive): boolean {
  return (
    drive.file === 'cloudinit' ||
    splitVolumeId(drive.file)?.name === 'cloudinit' ||
    /[:/]vm-\d+-cloudinit/.test(drive.file)
  );
}

export function isPlainCdrom(drive: Drive): boolean {
  return isCdrom(drive) && !isCloudInit(drive);
}

export interface NewDisk {
  readonly storage: string | undefined;
  readonly bytes: number;
}

/** Parses `STORAGE:32`, a request for a new disk; undefined for an existing volume. */
export function parseNewDisk(drive: Drive): NewDisk | undefined {
  const match = NEW_DISK.exec(drive.file);
  if (match === null) return undefined;
  return { storage: match[2], bytes: Math.floor(Number(match[3]) * 2 ** 30) };
}

/** Limits that need another one: `[limit, needed]`. */
const LIMIT_NEEDS = [
  ...['mbps', 'mbps_rd', 'mbps_wr'].map((name) => [`${name}_max`, name]),
  ...['bps', 'bps_rd', 'bps_wr'].map((name) => [`${name}_max_length`, `m${name}_max`]),
  ...['iops', 'iops_rd', 'iops_wr'].map((name) => [`${name}_max_length`, `${name}_max`]),
] as const;

/** Rules for combinations of options. */
export function areOptionsConsistent(slot: string, options: VmOptions): boolean {
  const has = (name = '') => !['', '0'].includes(options[name] ?? '');
  if (LIMIT_NEEDS.some(([limit, needed]) => has(limit) && !has(needed))) return false;
  const isDouble = (name: string) => has(name) && (has(`${name}_rd`) || has(`${name}_wr`));
  if (isDouble('mbps') || isDouble('iops')) return false;
  if (options['media'] !== 'cdrom') return true;
  return !has('snapshot') && !has('format') && !slot.startsWith('virtio');
}

/** Options that an import must name, because they cannot be read from the image. */
const IMPORT_NEEDS: Readonly<Record<string, readonly string[]>> = {
  efidisk0: ['efitype', 'pre-enrolled-keys'],
  tpmstate0: ['version'],
};

/** Parses a drive and checks its options and the syntax of an import. */
export function parseDriveOption(slot: string, text: string): Drive {
  const drive = parseDrive(slot, text);
  if (!areOptionsConsistent(slot, drive.options))
    throw parameterError({ [slot]: 'unable to parse drive options' });
  const request = parseNewDisk(drive);
  if (drive.options['import-from'] !== undefined && request?.bytes !== 0) {
    throw parameterError({
      [slot]: "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>",
    });
  }
  const missing = IMPORT_NEEDS[slot]?.find((name) => drive.options[name] === undefined);
  if (drive.options['import-from'] !== undefined && missing !== undefined)
    throw parameterError({ [slot]: `need to specify '${missing}' when using 'import-from'` });
  return drive;
}

export interface Nic {
  readonly model: string;
  readonly mac: string | undefined;
  readonly options: VmOptions;
}

export function parseNic(text: string): Nic {
  const { model = 'virtio', macaddr, ...options } = parseProperties(propertyFields('netN'), text);
  return { model, mac: macaddr, options };
}

/** Writes booleans as digits and the MAC in upper case. */
export function formatNic(nic: Nic, mac: string): string {
  const options = Object.entries(nic.options)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => `,${key}=${BOOLEAN_WORDS[value] ?? value}`);
  return `${nic.model}=${(nic.mac ?? mac).toUpperCase()}${options.join('')}`;
}

export function parseNics(config: VmOptions): readonly (readonly [string, Nic])[] {
  return Object.keys(config)
    .filter((name) => /^net\d+$/.test(name))
    .toSorted((a, b) => Number(a.slice(3)) - Number(b.slice(3)))
    .map((name) => [name, parseNic(config[name] ?? '')] as const);
}

const BOOT_BUSES = ['ide', 'scsi', 'virtio', 'sata'];

/** First disk, first CD-ROM (including a cloud-init drive), first network card. */
export function defaultBootOrder(config: VmOptions): string {
  const rank = (name: string) =>
    BOOT_BUSES.indexOf(name.replace(/\d+$/, '')) * 100 + Number(/\d+$/.exec(name)?.[0] ?? 0);
  const drives = parseDrives(config)
    .filter(([name]) => BOOT_BUSES.includes(name.replace(/\d+$/, '')))
    .toSorted(([a], [b]) => rank(a) - rank(b));
  const disk = drives.find(([, drive]) => !isCdrom(drive))?.[0];
  const cdrom = drives.find(([, drive]) => isCdrom(drive))?.[0];
  const nic = parseNics(config)[0]?.[0];
  return formatBootOrder([disk, cdrom, nic].filter((name) => name !== undefined));
}

/** Proxmox writes an empty boot order as a space. */
export function formatBootOrder(devices: readonly string[]): string {
  return devices.length === 0 ? ' ' : `order=${devices.join(';')}`;
}

/** The boot devices of a config, in order. */
export function parseBootOrder(config: VmOptions): readonly string[] {
  const request = /^order=(.*)$/.exec(config['boot'] ?? defaultBootOrder(config))?.[1] ?? '';
  return request.split(/[;,]/).filter((name) => name !== '');
}
