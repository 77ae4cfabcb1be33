// SPDX-License-Identifier: Apache-2.0
import { PvescalerError, Unreachable } from '../../src/ports/errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../src/ports/transport.ts';

/** A line that can be cut: everything under way breaks, and nothing new gets through until it is mended. */
export class SeverableTransport implements Transport {
  readonly #inner: Transport;
  #cut = new AbortController();

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  cutOff(): void {
    this.#cut.abort();
  }

  mend(): void {
    this.#cut = new AbortController();
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    const { signal: cut } = this.#cut;
    if (cut.aborted) throw broken(false);
    const signal = request.signal ? AbortSignal.any([request.signal, cut]) : cut;
    try {
      const response = await this.#inner.request({ ...request, signal });
      return { ...response, body: whole(response.body, cut) };
    } catch (error) {
      throw cut.aborted ? broken(true) : error;
    }
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

async function* whole(
  body: AsyncIterable<Uint8Array>,
  cut: AbortSignal,
): AsyncIterable<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    if (error instanceof PvescalerError && cut.aborted) throw broken(true);
    throw error;
  }
}

function broken(requestSent: boolean): Unreachable {
  return new Unreachable('KUBERNETES_UNREACHABLE', 'the line is cut', { facts: { requestSent } });
}
