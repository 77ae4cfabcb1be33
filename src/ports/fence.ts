// SPDX-License-Identifier: Apache-2.0

/**
 * The right to change something outside, for as long as it lasts. Asked at the last instant before a request leaves
 * the process: one that was stopped for a minute between a decision and its request must not send it any more.
 */
export interface Fence {
  mayAct(): boolean;
}
