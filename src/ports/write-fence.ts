// SPDX-License-Identifier: Apache-2.0

/**
 * Checks that this process is still the driver. Called immediately before a request leaves the process: a process that
 * was paused for a minute between a decision and its request must not send that request.
 */
export interface WriteFence {
  mayAct(): boolean;
}

/** How a request with side effects ended. */
export type RequestOutcome =
  /** The peer has reported the result, or the request was never sent. */
  | 'settled'
  /** The request was sent and its result is unknown: it may still take effect. */
  | 'unknown';

/** A fence that also tracks the requests that passed it and are still in flight. */
export interface RequestFence extends WriteFence {
  /** Call it when a request with side effects is sent; call the returned function once, when the request ends. */
  beginRequest(): (outcome: RequestOutcome) => void;
}
