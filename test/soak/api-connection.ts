// SPDX-License-Identifier: Apache-2.0
import { Cancelled, Unreachable } from '../../src/ports/errors.ts';
import { SimulatedCrash } from '../../src/ports/fakes/memory-store.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../src/ports/transport.ts';

export interface ConnectionObserver {
  /** Before a write is sent; the process may be suspended here. */
  readonly beforeWrite: () => Promise<void>;
  /** After a write took effect. */
  readonly afterWrite: (request: TransportRequest) => void;
  /** After a write that was late, whatever its result. */
  readonly afterLateWrite: () => Promise<void>;
  /** After each durable write, local ones too. */
  readonly onWrite: () => void;
}

export type ApiMode = 'connected' | 'unreachable' | 'hanging';

/**
 * `lost`: the request does not arrive. `answer-lost`, `no-answer`: it takes effect, and the connection breaks or hangs.
 * `late`: it takes effect later, perhaps after the client has given up.
 */
export type RequestFault = 'lost' | 'answer-lost' | 'no-answer' | 'late';

interface ConnectionOptions {
  readonly records: {
    readonly mode: ApiMode;
    takeFault(method: string): RequestFault | undefined;
    sendLater(send: () => Promise<void>): void;
  };
  readonly observer: ConnectionObserver;
  readonly transport: Transport;
}

/** The connection of one process to the API server. It ends with the process: after a crash nothing is sent. */
export class ApiConnection implements Transport {
  readonly #options: ConnectionOptions;
  readonly #transport: Transport;
  #writesLeft = Number.POSITIVE_INFINITY;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#transport = options.transport;
  }

  /** See `MemoryStore.crashAfterWrites`. */
  crashAfterWrites(n: number): void {
    this.#writesLeft = n;
  }

  throwIfDead(): void {
    if (this.#writesLeft <= 0) throw new SimulatedCrash('the simulated process has crashed');
  }

  countWrite(): void {
    this.throwIfDead();
    this.#writesLeft -= 1;
    this.#options.observer.onWrite();
    this.throwIfDead();
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    const { observer } = this.#options;
    const isWrite = request.method !== 'GET';
    this.throwIfDead();
    if (isWrite) await observer.beforeWrite();
    this.throwIfDead();
    if (request.maySend?.() === false)
      throw new Cancelled('CANCELLED', 'the request was withdrawn', {
        facts: { requestSent: false },
      });
    const fault = this.#options.records.takeFault(request.method);
    await this.#reach(fault, request.signal);
    if (fault === 'late') return this.#sendLate(request);
    const response = await this.#transport.request(request);
    if (isWrite && response.status < 300) {
      observer.afterWrite(request);
      this.countWrite();
    }
    if (fault === 'answer-lost') throw unreachable(true);
    if (fault === 'no-answer') await untilAborted(request.signal);
    return response;
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  #sendLate({ signal, ...request }: TransportRequest): Promise<never> {
    const { records, observer } = this.#options;
    records.sendLater(async () => {
      await this.#transport.request(request);
      await observer.afterLateWrite();
    });
    return untilAborted(signal);
  }

  async #reach(fault: RequestFault | undefined, signal: AbortSignal | undefined): Promise<void> {
    const { mode } = this.#options.records;
    if (mode === 'unreachable') throw unreachable(false);
    if (mode === 'hanging') await untilAborted(signal);
    if (fault === 'lost') throw unreachable(true);
  }
}

function unreachable(requestSent: boolean): Unreachable {
  return new Unreachable('KUBERNETES_UNREACHABLE', 'the connection broke', {
    facts: { requestSent },
  });
}

function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_resolve, reject) => {
    const onAbort = () => reject(new Cancelled('CANCELLED', 'the request was cancelled'));
    if (signal?.aborted === true) return onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
