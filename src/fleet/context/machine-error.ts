// SPDX-License-Identifier: Apache-2.0
import { Cancelled, LostLeadership, PvescalerError, StoreUnusable } from '../../ports/errors.ts';

/**
 * Whether the error concerns one machine, VM or Node, so that the rest of the pass continues. A lost lease, an unusable
 * store and a record changed by another process end the pass.
 */
export function isMachineError(error: unknown): error is PvescalerError {
  return error instanceof PvescalerError && !endsThePass(error);
}

function endsThePass(error: PvescalerError): boolean {
  return (
    error instanceof LostLeadership ||
    error instanceof Cancelled ||
    error instanceof StoreUnusable ||
    error.code === 'RECORD_CHANGED' ||
    error.code === 'RECORD_NOT_FOUND'
  );
}

/** Proxmox says that no host has the VM. */
export function isVmGone(error: unknown): boolean {
  return error instanceof PvescalerError && error.code === 'VM_NOT_FOUND';
}
