// SPDX-License-Identifier: Apache-2.0

/** Short enough that a killed holder is replaced at once, and that a slow one now and then loses it. */
export const LEASE_MS = 80;

/** What a worker says on its standard output. */
export type Said =
  | { readonly event: 'opened' }
  | { readonly event: 'acquired' | 'renewed'; readonly token: number; readonly expiresAt: number }
  | {
      readonly event: 'wrote';
      readonly token: number;
      readonly count: number;
      readonly revision: number;
    }
  | {
      readonly event: 'noted';
      readonly token: number;
      readonly count: number;
      readonly sequence: number;
    }
  | { readonly event: 'paused' | 'releasing'; readonly token: number }
  | { readonly event: 'refused'; readonly token: number; readonly code: string }
  | { readonly event: 'kept'; readonly key: string; readonly sequence: number }
  | { readonly event: 'outcome'; readonly code: string }
  | {
      readonly event: 'filled';
      readonly code: string;
      readonly kept: number;
      readonly found: number;
    };

export type SaidEvent = Said['event'];
