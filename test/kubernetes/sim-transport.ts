// SPDX-License-Identifier: Apache-2.0
import { Cancelled, Unreachable } from '../../src/ports/errors.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../src/ports/transport.ts';
import type { KubernetesSim, Peer } from '../../src/sim/kubernetes/index.ts';

/** Calls the simulator in-process, so that a test depends on virtual time only. */
export class SimTransport implements Transport {
  readonly #sim: KubernetesSim;
  readonly #peer: Peer;

  constructor(sim: KubernetesSim, peer: Peer = {}) {
    this.#sim = sim;
    this.#peer = peer;
  }

  async request({ signal, ...request }: TransportRequest): Promise<TransportResponse> {
    const fetched = this.#sim.fetch(
      new Request(request.url, {
        method: request.method,
        ...(request.headers && { headers: request.headers }),
        ...(typeof request.body === 'string' && { body: request.body }),
      }),
      this.#peer,
    );
    const response = await rejectOnAbort(fetched, signal);
    return {
      status: response.status,
      reason: response.statusText,
      headers: Object.fromEntries(response.headers),
      body: readBody(response, signal),
    };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function* readBody(
  response: Response,
  signal: AbortSignal | undefined,
): AsyncIterable<Uint8Array> {
  const reader = (response.body ?? new ReadableStream()).getReader();
  try {
    for (;;) {
      const part = await rejectOnAbort(reader.read(), signal);
      if (part.done) return;
      yield part.value;
    }
  } catch (error) {
    if (error instanceof Cancelled) throw error;
    throw new Unreachable('KUBERNETES_UNREACHABLE', 'the connection broke', { cause: error });
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function rejectOnAbort<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(new Cancelled('CANCELLED', 'the request was cancelled'));
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal?.removeEventListener('abort', onAbort));
  });
}
