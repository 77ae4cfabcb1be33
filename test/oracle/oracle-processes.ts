// SPDX-License-Identifier: Apache-2.0
// Several oracle processes, used round-robin. Each handles its requests one after the other.

import {
  ReferenceProcess,
  type ReferenceRequest,
  type ReferenceResponse,
} from '../parity/reference-process.ts';

const PROCESSES = 2;

export class OracleProcesses implements AsyncDisposable {
  readonly #processes: readonly ReferenceProcess[];
  #requests = 0;

  constructor(program: string) {
    this.#processes = Array.from({ length: PROCESSES }, () => new ReferenceProcess(program));
  }

  request(request: ReferenceRequest): Promise<ReferenceResponse> {
    this.#requests += 1;
    const process = this.#processes[this.#requests % this.#processes.length];
    return process === undefined
      ? Promise.reject(new Error('there is no oracle process'))
      : process.request(request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process[Symbol.asyncDispose]()));
  }
}
