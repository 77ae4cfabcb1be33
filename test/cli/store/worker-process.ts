// SPDX-License-Identifier: Apache-2.0
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { WorkerReport } from './worker-report.ts';

export const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));

/** A worker, seen from its parent: its reports so far, and its end. */
export class WorkerProcess {
  readonly name: string;
  readonly reports: WorkerReport[] = [];
  readonly ended: Promise<void>;
  readonly #child: ChildProcessWithoutNullStreams;
  #stderrText = '';
  #isKilled = false;

  constructor(
    args: readonly string[],
    onReport: (report: WorkerReport, by: WorkerProcess) => void = () => undefined,
  ) {
    this.name = args.at(-1) ?? '';
    this.#child = spawn(process.execPath, [WORKER, ...args]);
    this.#child.stderr.on('data', (data) => (this.#stderrText += String(data)));
    // Writing to a killed worker fails; ignore it.
    this.#child.stdin.on('error', () => undefined);
    const lines = createInterface({ input: this.#child.stdout });
    lines.on('line', (line) => {
      const report = parse(line);
      if (report === undefined) return;
      this.reports.push(report);
      onReport(report, this);
    });
    this.ended = this.#end(once(lines, 'close'));
  }

  get isKilled(): boolean {
    return this.#isKilled;
  }

  send(line: 'pause' | 'resume'): void {
    this.#child.stdin.write(`${line}\n`);
  }

  finish(): void {
    this.#child.stdin.end();
  }

  kill(): void {
    this.#isKilled = true;
    this.#child.kill('SIGKILL');
  }

  /** Resolves after the last report was read; rejects when the worker failed by itself. */
  async #end(outputClosed: Promise<unknown>): Promise<void> {
    const [[code, signal]] = await Promise.all([once(this.#child, 'exit'), outputClosed]);
    if (code !== 0 && !this.#isKilled) {
      throw new Error(`worker ${this.name} ended with ${code ?? signal}: ${this.#stderrText}`);
    }
  }
}

/** The last line of a killed process may be truncated; it does not count. */
function parse(line: string): WorkerReport | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
