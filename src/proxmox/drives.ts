// SPDX-License-Identifier: Apache-2.0
// The drives of a VM as Proxmox stores them: `scsi0: local-lvm:vm-100-disk-0,size=3G`.
import type { BootDisk } from '../ports/hypervisor.ts';
import { parseProperties } from './property-string.ts';

/** Every option of a VM under its own name: `scsi0`, `net0`, `ide2`, … */
export type VmOptions = Readonly<Record<string, string>>;

/** The drive that holds a machine's seed. */
export const SEED_DRIVE = 'ide2';
export const EMPTY_CD_DRIVE = 'none,media=cdrom';

const DRIVE = /^(?:ide|sata|scsi|virtio)\d+$/;
const CLOUD_INIT = /^[^,]*[:/](?:vm-\d+-)?cloudinit(?:\.\w+)?(?:,|$)/;
const ISO = /^[^:,]+:iso\/[^,]+/;

/** The name of the drive that the VM boots from: the first disk in its boot order, else the first usual one. */
export function findBootDrive(options: VmOptions): string | undefined {
  const ordered = /order=([^,]+)/.exec(options['boot'] ?? '')?.[1]?.split(';') ?? [];
  return [...ordered, 'scsi0', 'virtio0', 'sata0', 'ide0'].find((name) => isDisk(name, options));
}

function isDisk(name: string, options: VmOptions): boolean {
  const stored = options[name];
  return DRIVE.test(name) && stored !== undefined && !stored.includes('media=cdrom');
}

export function parseBootDisk(options: VmOptions): BootDisk | undefined {
  const stored = options[findBootDrive(options) ?? ''];
  if (stored === undefined) return undefined;
  return { storage: stored.split(':')[0] ?? '', bytes: parseDriveBytes(stored) ?? 0 };
}

export function parseDriveBytes(stored: string): number | undefined {
  return parseDiskSize(parseProperties(stored, 'file').get('size') ?? '');
}

export function findSeedVolume(options: VmOptions): string | undefined {
  return ISO.exec(options[SEED_DRIVE] ?? '')?.[0];
}

export function formatSeedDrive(volumeId: string): string {
  return `${volumeId},media=cdrom`;
}

/** Drives with a cloud-init seed that Proxmox generates. A guest with two seeds reads either of them. */
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

/** `32G`, `2252M`, `1.5T`, as the `size` of a disk is written. */
export function parseDiskSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([KMGT]?)$/.exec(text);
  if (match === null) return undefined;
  return Math.round(Number(match[1]) * (UNIT_BYTES[match[2] ?? ''] ?? 1));
}

/** Never smaller than asked; in the largest unit that says it exactly. */
export function formatDiskSize(bytes: number): string {
  const mebibytes = Math.ceil(bytes / 2 ** 20);
  return mebibytes % 1024 === 0 ? `${mebibytes / 1024}G` : `${mebibytes}M`;
}
