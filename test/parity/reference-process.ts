// SPDX-License-Identifier: Apache-2.0
// A child process that runs a reference program and responds to requests in order.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

export interface ReferenceRequest {
  readonly kind: string;
  readonly [field: string]: unknown;
}

export type ReferenceResponse = Readonly<Record<string, unknown>>;

interface PendingRequest {
  readonly resolve: (response: ReferenceResponse) => void;
  readonly reject: (reason: Error) => void;
}

export class ReferenceProcess implements AsyncDisposable {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #pending: PendingRequest[] = [];
  readonly #ended: Promise<void>;

  constructor(program: string) {
    this.#child = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.on('error', (error) => this.#rejectAll(error.message));
    this.#ended = new Promise((resolve) => {
      this.#child.on('close', (code) => {
        this.#rejectAll(`the reference program ended with exit code ${code}`);
        resolve();
      });
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#receive(line));
  }

  request(request: ReferenceRequest): Promise<ReferenceResponse> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject });
      this.#child.stdin.write(`${JSON.stringify(request)}\n`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin.end();
    await this.#ended;
  }

  #receive(line: string): void {
    const pending = this.#pending.shift();
    const response: ReferenceResponse = JSON.parse(line);
    if ('error' in response) pending?.reject(new Error(`the reference program failed: ${line}`));
    else pending?.resolve(response);
  }

  #rejectAll(reason: string): void {
    for (const { reject } of this.#pending.splice(0)) reject(new Error(reason));
  }
}
