// SPDX-License-Identifier: Apache-2.0
// What a clone takes over from its template and must not keep.
import type { VmConfig } from '../../ports/hypervisor.ts';

type Options = Pick<VmConfig, 'options'>;

/** A template is rightly protected; its clone could never be destroyed. */
export function isProtected({ options }: Options): boolean {
  return options['protection'] === '1';
}

const CLOUD_INIT = /^[^,]*[:/](?:vm-\d+-)?cloudinit(?:\.\w+)?(?:,|$)/;
const DRIVE = /^(?:ide|sata|scsi|virtio)\d+$/;

/** Drives with seeds that Proxmox makes itself. A guest that finds two seeds reads one of them, nobody knows which. */
export function cloudInitDrives({ options }: Options): readonly string[] {
  return Object.keys(options)
    .filter((slot) => DRIVE.test(slot) && CLOUD_INIT.test(options[slot] ?? ''))
    .sort();
}
