// SPDX-License-Identifier: Apache-2.0
const BEING_MADE = ['create', 'clone'];

/**
 * The lock alone tells. A clone has a description of Proxmox's own first, and the one that was ordered as soon as its
 * first disk is copied: whatever it says, the VM is gone again when its task fails.
 */
export function isBeingCreated({ lock }: { readonly lock: string | undefined }): boolean {
  return BEING_MADE.includes(lock ?? '');
}
