// SPDX-License-Identifier: Apache-2.0

/** One end of a message channel between two threads. Messages are plain data and arrive in order. */
export interface ThreadChannel<Out, In> {
  /** Never fails; a message to a closed end is lost. */
  send(message: Out): void;
  /** Takes one listener; messages that arrive earlier are queued for it. */
  onMessage(listener: (message: In) => void): void;
  /** Rejects when the other thread ends unexpectedly; never resolves. */
  readonly failed: Promise<never>;
  /** Closes the channel, and terminates the other thread if this end has started it. */
  close(): Promise<void>;
}
