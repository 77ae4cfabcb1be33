// SPDX-License-Identifier: Apache-2.0
// What a phase handler returns: when the machine is reconciled next.

export type ReconcileResult =
  /** Something was done; call the handler of the machine's phase again now. */
  | { readonly next: 'continue' }
  /** Nothing to do until something happens elsewhere; reconcile again after `afterMs`. */
  | { readonly next: 'requeue'; readonly afterMs: number; readonly because: string }
  /** Nothing to do. The next pass adds the machine again if it is not at rest. */
  | { readonly next: 'done' };

export const CONTINUE: ReconcileResult = { next: 'continue' };
export const DONE: ReconcileResult = { next: 'done' };

export function requeue(afterMs: number, because: string): ReconcileResult {
  return { next: 'requeue', afterMs, because };
}
