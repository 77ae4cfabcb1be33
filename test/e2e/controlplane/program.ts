// SPDX-License-Identifier: Apache-2.0
// One program under test: its output goes to a file, its exit is observed, and it never outlives the test process.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { killOnExit } from './reaper.ts';
import { PermanentFailure } from './wait-until.ts';

export interface ProgramOptions {
  readonly name: string;
  readonly path: string;
  readonly args: readonly string[];
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
}

const TAIL_LINES = 30;

export class Program {
  readonly #options: ProgramOptions;
  #child: ChildProcess;

  constructor(order: ProgramOptions) {
    this.#options = order;
    this.#child = launch(order);
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  log(): string {
    return readFileSync(this.#options.logFile, 'utf8');
  }

  sendSignal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Exit code, or the signal's name. */
  async waitForExit(): Promise<number | string> {
    if (this.isRunning) await once(this.#child, 'exit');
    return this.#child.exitCode ?? this.#child.signalCode ?? 'unknown';
  }

  async kill(): Promise<void> {
    // A stopped process handles only SIGKILL, and it must end before its folder is deleted.
    this.sendSignal('SIGKILL');
    await this.waitForExit();
  }

  /** Kills the program and starts it again with the same files. */
  async restart(): Promise<void> {
    await this.kill();
    this.#child = launch(this.#options);
  }

  /** Throws with the end of its output when it is no longer running. */
  assertRunning(): void {
    if (this.isRunning) return;
    const tail = this.log().trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
    throw new PermanentFailure(`${this.#options.name} exited unexpectedly:\n${tail}`);
  }
}

function launch({ path, args, logFile, env }: ProgramOptions): ChildProcess {
  const log = openSync(logFile, 'a');
  const child = spawn(path, [...args], {
    stdio: ['ignore', log, log],
    env: { PATH: process.env['PATH'], ...env },
  });
  closeSync(log);
  child.on('error', () => undefined);
  killOnExit(child);
  return child;
}
