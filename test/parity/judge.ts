// SPDX-License-Identifier: Apache-2.0
// The judge as seen from a test: a child process that answers questions in the order they are asked.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

export interface Question {
  readonly kind: string;
  readonly [field: string]: unknown;
}

export type Answer = Readonly<Record<string, unknown>>;

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (reason: Error) => void;
}

export class Judge implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting: Waiting[] = [];
  readonly #ended: Promise<void>;
  #asked = 0;

  constructor(program: string) {
    this.#child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.on('error', (error) => this.#abandon(error.message));
    this.#ended = new Promise((resolve) => {
      this.#child.on('close', (code) => {
        this.#abandon(`the judge ended with exit code ${code}`);
        resolve();
      });
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#receive(line));
  }

  get asked(): number {
    return this.#asked;
  }

  ask(question: Question): Promise<Answer> {
    this.#asked += 1;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#child.stdin.write(`${JSON.stringify(question)}\n`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }

  #receive(line: string): void {
    const waiting = this.#waiting.shift();
    const answer: Answer = JSON.parse(line);
    if ('fault' in answer) waiting?.reject(new Error(`the judge could not tell: ${line}`));
    else waiting?.resolve(answer);
  }

  #abandon(reason: string): void {
    for (const { reject } of this.#waiting.splice(0)) reject(new Error(reason));
  }
}
