// SPDX-License-Identifier: Apache-2.0
import { PvescalerError, Unreachable } from '../../src/ports/errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../src/ports/transport.ts';

/** A transport that tests can interrupt: `cutOff` breaks every open request and rejects new ones until `reconnect`. */
export class SeverableTransport implements Transport {
  readonly #inner: Transport;
  #cut = new AbortController();

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  cutOff(): void {
    this.#cut.abort();
  }

  reconnect(): void {
    this.#cut = new AbortController();
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    const { signal: cut } = this.#cut;
    if (cut.aborted) throw unreachableError(false);
    const signal = request.signal ? AbortSignal.any([request.signal, cut]) : cut;
    try {
      const response = await this.#inner.request({ ...request, signal });
      return { ...response, body: readUntilCut(response.body, cut) };
    } catch (error) {
      throw cut.aborted ? unreachableError(true) : error;
    }
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

async function* readUntilCut(
  body: AsyncIterable<Uint8Array>,
  cut: AbortSignal,
): AsyncIterable<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    if (error instanceof PvescalerError && cut.aborted) throw unreachableError(true);
    throw error;
  }
}

function unreachableError(requestSent: boolean): Unreachable {
  return new Unreachable('KUBERNETES_UNREACHABLE', 'the connection is cut off', {
    facts: { requestSent },
  });
}
