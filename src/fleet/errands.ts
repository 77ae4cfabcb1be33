// SPDX-License-Identifier: Apache-2.0

/**
 * Work that may take a while and that no round waits for: begun in one, its end taken note of in a later one. Only
 * for what may be begun again by anybody at any time.
 */
export class Errands {
  readonly #errands = new Map<string, 'running' | 'done' | Error>();

  /** How it stands; an end is told once. Throws what it failed with. */
  take(key: string): 'none' | 'running' | 'done' {
    const state = this.#errands.get(key) ?? 'none';
    if (state !== 'running') this.#errands.delete(key);
    if (state instanceof Error) throw state;
    return state;
  }

  isRunning(key: string): boolean {
    return this.#errands.get(key) === 'running';
  }

  begin(key: string, work: Promise<void>): void {
    this.#errands.set(key, 'running');
    const end = (state: 'done' | Error) => {
      if (this.#errands.get(key) === 'running') this.#errands.set(key, state);
    };
    work.then(
      () => end('done'),
      (error: unknown) => end(error instanceof Error ? error : new Error(String(error))),
    );
  }

  forget(key: string): void {
    this.#errands.delete(key);
  }
}
