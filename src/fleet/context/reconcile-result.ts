// SPDX-License-Identifier: Apache-2.0
// What a phase handler returns: the only answer to "when is this machine looked at again".

export type ReconcileResult =
  /** Something was done; call the handler of the machine's phase again now. */
  | { readonly next: 'continue' }
  /** Nothing to do until something happens elsewhere; look again after `afterMs`. */
  | { readonly next: 'requeue'; readonly afterMs: number; readonly because: string }
  /** Nothing to do. The next pass looks again if the machine is not at rest. */
  | { readonly next: 'done' };

export const CONTINUE: ReconcileResult = { next: 'continue' };
export const DONE: ReconcileResult = { next: 'done' };

export function requeue(afterMs: number, because: string): ReconcileResult {
  return { next: 'requeue', afterMs, because };
}
