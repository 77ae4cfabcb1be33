// SPDX-License-Identifier: Apache-2.0
import { Cancelled, LostLeadership, PvescalerError, StoreUnusable } from '../../ports/errors.ts';

/**
 * Whether it is trouble with one thing on Proxmox, which must not keep the rest of the round from being done. The
 * end of our right to act, a broken store and faults of ours are not: they end the round.
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
