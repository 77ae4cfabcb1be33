// SPDX-License-Identifier: Apache-2.0
// What a command may use of the world. main.ts fills it in; tests fill it in with what they like.
import type { Clock } from '../ports/clock.ts';
import type { Random } from '../ports/random.ts';
import type { Store } from '../ports/store.ts';

export interface Files {
  /** Undefined when there is no such file. Rejects with the system's own error otherwise. */
  read(path: string): Promise<string | undefined>;
  /** Makes missing folders. An existing file is left alone unless told otherwise. */
  write(
    path: string,
    text: string,
    options: { readonly overwrite: boolean },
  ): Promise<'written' | 'exists-already'>;
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
    /** StoreUnusable/STORE_UNREADABLE when there is none: reading commands make no database. */
    openStore(
      path: string,
    ): Promise<{ readonly store: Store; readonly warnings: readonly string[] }>;
  };
}

/** What a command gets to work with. */
export interface CommandHost {
  readonly context: CliContext;
  /** Ends with this exit code although nothing was thrown (problems were already told). */
  exitWith(code: number): void;
}
