// SPDX-License-Identifier: Apache-2.0

/** One end of a line to another thread. Messages are plain data; they arrive in the order in which they were sent. */
export interface Link<Out, In> {
  /** Never fails; what is sent to an end that is no longer there is lost. */
  send(message: Out): void;
  /** One listener; what arrives before there is one waits for it. */
  onMessage(listener: (message: In) => void): void;
  /** Rejects when the other end dies without having been asked to; never resolves. */
  readonly broken: Promise<never>;
  /** Ends the line, and the other thread where this end has started it. */
  close(): Promise<void>;
}
