// SPDX-License-Identifier: Apache-2.0
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Said } from './said.ts';

export const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));

/** A worker as its parent sees it: what it has said so far, and how it ends. */
export class WorkerProcess {
  readonly name: string;
  readonly said: Said[] = [];
  readonly ended: Promise<void>;
  readonly #child: ChildProcessWithoutNullStreams;
  #complaint = '';
  #isKilled = false;

  constructor(
    args: readonly string[],
    onSaid: (said: Said, by: WorkerProcess) => void = () => undefined,
  ) {
    this.name = args.at(-1) ?? '';
    this.#child = spawn(process.execPath, [WORKER, ...args]);
    this.#child.stderr.on('data', (data) => (this.#complaint += String(data)));
    // Orders to one that was just killed go nowhere.
    this.#child.stdin.on('error', () => undefined);
    const lines = createInterface({ input: this.#child.stdout });
    lines.on('line', (line) => {
      const said = parse(line);
      if (said === undefined) return;
      this.said.push(said);
      onSaid(said, this);
    });
    this.ended = this.#end(once(lines, 'close'));
  }

  get isKilled(): boolean {
    return this.#isKilled;
  }

  order(line: 'pause' | 'resume'): void {
    this.#child.stdin.write(`${line}\n`);
  }

  finish(): void {
    this.#child.stdin.end();
  }

  kill(): void {
    this.#isKilled = true;
    this.#child.kill('SIGKILL');
  }

  /** Resolves after its last word was heard; rejects if it ended by itself in any other way than well. */
  async #end(lastWord: Promise<unknown>): Promise<void> {
    const [[code, signal]] = await Promise.all([once(this.#child, 'exit'), lastWord]);
    if (code !== 0 && !this.#isKilled) {
      throw new Error(`worker ${this.name} ended with ${code ?? signal}: ${this.#complaint}`);
    }
  }
}

/** The last line of a killed process may be cut short: then it was not said. */
function parse(line: string): Said | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
