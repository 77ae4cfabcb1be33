// SPDX-License-Identifier: Apache-2.0

/**
 * The right to change something outside, for as long as it lasts. Asked at the last instant before a request leaves
 * the process: one that was stopped for a minute between a decision and its request must not send it any more.
 */
export interface WriteFence {
  mayAct(): boolean;
}

/** How a request that may change something ended. */
export type RequestEnd =
  /** The peer has said what became of it, or it never left. */
  | 'settled'
  /** It was sent, and nobody knows: it may still take effect. */
  | 'unsure';

/** A fence that also knows what has passed it and has not ended. */
export interface RequestFence extends WriteFence {
  /** A request that may change something leaves now; the answer is called once, at its end. */
  beginRequest(): (end: RequestEnd) => void;
}
