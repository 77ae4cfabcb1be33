// SPDX-License-Identifier: Apache-2.0
// The drives of a VM as Proxmox stores them: `scsi0: local-lvm:vm-100-disk-0,size=3G`.
import type { BootDisk } from '../ports/hypervisor.ts';
import { parseDiskSize, parseProperties } from './property-string.ts';

/** Every option of a VM under its own name: `scsi0`, `net0`, `ide2`, … */
export type VmOptions = Readonly<Record<string, string>>;

/** The drive that holds a machine's seed. */
export const SEED_DRIVE = 'ide2';
export const EMPTY_CD_DRIVE = 'none,media=cdrom';

const DRIVE = /^(?:ide|sata|scsi|virtio)\d+$/;
const CLOUD_INIT = /^[^,]*[:/](?:vm-\d+-)?cloudinit(?:\.\w+)?(?:,|$)/;
const ISO = /^[^:,]+:iso\/[^,]+/;

/** The name of the drive that the VM boots from: the first disk in its boot order, else the first usual one. */
export function bootDriveOf(options: VmOptions): string | undefined {
  const ordered = /order=([^,]+)/.exec(options['boot'] ?? '')?.[1]?.split(';') ?? [];
  return [...ordered, 'scsi0', 'virtio0', 'sata0', 'ide0'].find((name) => isDisk(name, options));
}

function isDisk(name: string, options: VmOptions): boolean {
  const stored = options[name];
  return DRIVE.test(name) && stored !== undefined && !stored.includes('media=cdrom');
}

export function bootDiskOf(options: VmOptions): BootDisk | undefined {
  const stored = options[bootDriveOf(options) ?? ''];
  if (stored === undefined) return undefined;
  return { storage: stored.split(':')[0] ?? '', bytes: diskBytesOf(stored) ?? 0 };
}

export function diskBytesOf(stored: string): number | undefined {
  return parseDiskSize(parseProperties(stored, 'file').get('size') ?? '');
}

export function seedVolumeOf(options: VmOptions): string | undefined {
  return ISO.exec(options[SEED_DRIVE] ?? '')?.[0];
}

export function seedDrive(volumeId: string): string {
  return `${volumeId},media=cdrom`;
}

/** Drives with a cloud-init seed that Proxmox generates. A guest with two seeds reads either of them. */
export function cloudInitDrivesOf(options: VmOptions): readonly string[] {
  return Object.keys(options)
    .filter((name) => DRIVE.test(name) && CLOUD_INIT.test(options[name] ?? ''))
    .sort();
}
