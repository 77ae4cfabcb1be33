// SPDX-License-Identifier: Apache-2.0
// One program under test: its output in a file, its end known, never left behind.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { reap } from './reaper.ts';
import { WaitingIsNoUse } from './wait-until.ts';

export interface ProgramOrder {
  readonly name: string;
  readonly path: string;
  readonly args: readonly string[];
  readonly logFile: string;
  readonly env?: Readonly<Record<string, string>>;
}

const TAIL_LINES = 30;

export class Program {
  readonly #order: ProgramOrder;
  #child: ChildProcess;

  constructor(order: ProgramOrder) {
    this.#order = order;
    this.#child = launch(order);
  }

  get pid(): number {
    return this.#child.pid ?? -1;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  log(): string {
    return readFileSync(this.#order.logFile, 'utf8');
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Exit code, or the signal's name. */
  async ended(): Promise<number | string> {
    if (this.isRunning) await once(this.#child, 'exit');
    return this.#child.exitCode ?? this.#child.signalCode ?? 'unknown';
  }

  async kill(): Promise<void> {
    // A frozen process takes no signal but this one, and it has to be gone before its folder is.
    this.signal('SIGKILL');
    await this.ended();
  }

  /** The same again, on the same files. */
  async restart(): Promise<void> {
    await this.kill();
    this.#child = launch(this.#order);
  }

  /** Throws the end of its output when it is not running any more. */
  demandRunning(): void {
    if (this.isRunning) return;
    const tail = this.log().trimEnd().split('\n').slice(-TAIL_LINES).join('\n');
    throw new WaitingIsNoUse(`${this.#order.name} ended by itself:\n${tail}`);
  }
}

function launch({ path, args, logFile, env }: ProgramOrder): ChildProcess {
  const log = openSync(logFile, 'a');
  const child = spawn(path, [...args], {
    stdio: ['ignore', log, log],
    env: { PATH: process.env['PATH'], ...env },
  });
  closeSync(log);
  child.on('error', () => undefined);
  reap(child);
  return child;
}
