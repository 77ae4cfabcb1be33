// SPDX-License-Identifier: Apache-2.0

interface RemoteCall {
  /** Limit for connecting, waiting for a free channel and running. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /**
   * Asked when the connection is there, just before the command is sent, and again before its input is. False: nothing
   * more is sent, and the call rejects with Cancelled.
   */
  readonly maySend?: () => boolean;
}

export interface RemoteCommand extends RemoteCall {
  /** One line for the login shell of the user. Every argument is quoted with `quoteShell`; no secrets, which go to `input`. */
  readonly command: string;
  /** Standard input; may contain secrets. */
  readonly input?: string | Uint8Array;
}

export interface RemoteResult {
  /** Undefined: a signal ended the command. */
  readonly exitCode: number | undefined;
  readonly output: string;
  readonly errorOutput: string;
}

export interface RemoteFile extends RemoteCall {
  /** Absolute. */
  readonly path: string;
}

/**
 * The commands and files of one remote host, over one connection that carries several commands at a time and is opened
 * again when it was lost.
 *
 * Rejects with Unreachable, TimedOut, Unauthorized (host key or login refused), Cancelled, or InvalidConfig (key file,
 * known hosts). `facts.requestSent` is false only when the host certainly received nothing: in every other case the
 * command may have run. A rejected or aborted call does not end the command: a command without a terminal is not told
 * that its connection is gone.
 */
export interface RemoteShell {
  /** `host` or `host:port`, for messages. */
  readonly address: string;
  /** Resolves with any exit code. */
  run(command: RemoteCommand): Promise<RemoteResult>;
  /** Overwrites the file; a new file is readable by its owner only. */
  writeFile(file: RemoteFile & { readonly bytes: Uint8Array }): Promise<void>;
  /** Resolves also if the file does not exist. */
  removeFile(file: RemoteFile): Promise<void>;
  close(): Promise<void>;
}
