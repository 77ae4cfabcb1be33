// SPDX-License-Identifier: Apache-2.0
// What a command may use of the world. main.ts fills it in; tests fill it in with what they like.
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';

export interface Files {
  /** Rejects with the system's own error; the command says what the file was for. */
  read(path: string): Promise<string>;
  /** Refuses to overwrite unless told to. */
  write(path: string, text: string, options: { readonly overwrite: boolean }): Promise<void>;
}

export interface CliContext {
  /** Results. Nothing else goes there, so that it can be piped. */
  readonly out: (text: string) => void;
  /** Progress, warnings, errors. */
  readonly err: (text: string) => void;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  /** Folders whose files a reboot may remove. */
  readonly tempFolders: readonly string[];
  readonly files: Files;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborted by the first SIGINT or SIGTERM. */
  readonly signal: AbortSignal;
  readonly version: string;
  /** Adapters, loaded when asked for. */
  readonly adapters: {
    openStore(path: string): Promise<Store>;
  };
}
