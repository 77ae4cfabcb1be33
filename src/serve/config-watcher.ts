// SPDX-License-Identifier: Apache-2.0
// Notices that the config file has another content, whichever way it got there: written in place, renamed over, or
// behind a symbolic link that was swapped (a mounted ConfigMap). So it compares content, not events of one path.
import type { LoadResult, PoolEntry } from '../config/index.ts';
import type { Clock } from '../ports/clock.ts';

export interface ConfigSource {
  /** For messages. */
  readonly path: string;
  /** Undefined when the file does not exist. */
  readText(): Promise<string | undefined>;
  /** Validates the text together with environment, flags and more entries of `pools`. */
  load(text: string | undefined, pools?: readonly PoolEntry[]): Promise<LoadResult>;
}

/** `retry`: something else than the text was the reason, so the same text is tried again later. */
export type ReloadOutcome = 'done' | 'retry';

export interface WatcherOptions {
  readonly clock: Clock;
  readonly readText: ConfigSource['readText'];
  /** Handles a new content. `isRequested`: a person asked for it, so that an unchanged text is read again, too. */
  readonly reload: (content: Content, isRequested: boolean) => Promise<ReloadOutcome>;
}

export type Content =
  | { readonly kind: 'text'; readonly text: string | undefined }
  | { readonly kind: 'unreadable'; readonly message: string };

const POLL_MS = 2_000;
const RETRY_MS = 30_000;

export class ConfigWatcher {
  readonly #options: WatcherOptions;
  #handled: Content;
  #lastRead: Content;
  /** `at`: on the monotonic clock. */
  #retry: { readonly at: number; readonly isRequested: boolean } | undefined;
  #requested = new AbortController();

  /** `text`: of the settings in use. */
  constructor(options: WatcherOptions, text: string | undefined) {
    this.#options = options;
    this.#handled = { kind: 'text', text };
    this.#lastRead = this.#handled;
  }

  /** Reads the file now, and handles it even if it has not changed. */
  request(): void {
    this.#requested.abort();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const either = AbortSignal.any([signal, this.#requested.signal]);
      await clock.sleep(POLL_MS, { signal: either }).catch(() => undefined);
      if (!signal.aborted) await this.poll();
    }
  }

  async poll(): Promise<void> {
    const isRequested = this.#requested.signal.aborted;
    if (isRequested) this.#requested = new AbortController();
    const content = await this.#read();
    // Half of a file may be valid, with half of the pools. Two equal readings are a whole file.
    const isComplete = isEqual(content, this.#lastRead);
    this.#lastRead = content;
    if (isRequested || (isComplete && !isEqual(content, this.#handled)))
      await this.#handle(content, isRequested);
    else if (this.#retry !== undefined && this.#options.clock.monotonic() >= this.#retry.at)
      await this.#handle(this.#handled, this.#retry.isRequested);
  }

  async #handle(content: Content, isRequested: boolean): Promise<void> {
    const { reload, clock } = this.#options;
    this.#handled = content;
    const outcome = await reload(content, isRequested);
    this.#retry =
      outcome === 'retry' ? { at: clock.monotonic() + RETRY_MS, isRequested } : undefined;
  }

  async #read(): Promise<Content> {
    try {
      return { kind: 'text', text: await this.#options.readText() };
    } catch (error) {
      return {
        kind: 'unreadable',
        message: error instanceof Error ? error.message : String(error),
      };
    }
  }
}

function isEqual(one: Content, other: Content): boolean {
  return one.kind === 'text'
    ? other.kind === 'text' && one.text === other.text
    : other.kind === 'unreadable' && one.message === other.message;
}
