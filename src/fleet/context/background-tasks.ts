// SPDX-License-Identifier: Apache-2.0

/**
 * Work that no handler waits for: one pass starts it, a later one takes its result. Only for work that may be started
 * again at any time.
 */
export class BackgroundTasks {
  readonly #tasks = new Map<string, 'running' | 'done' | Error>();

  /** Returns a result once. Throws the error that the task ended with. */
  takeResult(key: string): 'none' | 'running' | 'done' {
    const state = this.#tasks.get(key) ?? 'none';
    if (state !== 'running') this.#tasks.delete(key);
    if (state instanceof Error) throw state;
    return state;
  }

  isRunning(key: string): boolean {
    return this.#tasks.get(key) === 'running';
  }

  begin(key: string, work: Promise<void>): void {
    this.#tasks.set(key, 'running');
    const end = (state: 'done' | Error) => {
      if (this.#tasks.get(key) === 'running') this.#tasks.set(key, state);
    };
    work.then(
      () => end('done'),
      (error: unknown) => end(error instanceof Error ? error : new Error(String(error))),
    );
  }

  forget(key: string): void {
    this.#tasks.delete(key);
  }
}
