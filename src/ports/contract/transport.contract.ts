// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SizedBody, Transport, TransportRequest } from '../transport.ts';

export interface PeerRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}

/** `no response` never responds, `reset` resets the connection; a body of several parts waits 1 ms between them. */
export type PeerResponse =
  | 'no response'
  | 'reset'
  | {
      readonly status: number;
      readonly reason?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly parts?: readonly string[];
      /** Leaves the body open after the last part, as a watch does. */
      readonly unfinished?: boolean;
    };

interface TransportUnderTest {
  readonly transport: Transport;
  /** Starts a peer and returns its base URL. */
  serve(peer: (request: PeerRequest) => PeerResponse): Promise<string>;
  /** Returns a base URL at which no server listens. */
  closedPort(): Promise<string>;
  /** Lets at least this much time pass. */
  advance(ms: number): Promise<void>;
  cleanup(): Promise<void>;
}

export async function readText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of body) text += decoder.decode(part, { stream: true });
  return text;
}

function sized(parts: readonly string[]): SizedBody {
  const encoded = parts.map((part) => new TextEncoder().encode(part));
  return {
    byteLength: encoded.reduce((sum, part) => sum + part.length, 0),
    async *open() {
      yield* encoded;
    },
  };
}

export function transportContract(name: string, make: () => Promise<TransportUnderTest>): void {
  describe(`Transport contract: ${name}`, () => {
    let under: TransportUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    afterEach(() => under.cleanup());

    const get = (url: string, extra: Partial<TransportRequest> = {}) =>
      under.transport.request({ method: 'GET', url, timeoutMs: 5_000, ...extra });

    /** A peer that never responds; `received` resolves when it has received a request. */
    const serveNothing = async () => {
      const { promise: received, resolve } = Promise.withResolvers<void>();
      const base = await under.serve(() => {
        resolve();
        return 'no response';
      });
      return { base, received };
    };

    it('returns status, reason phrase, lower-case headers and body', async () => {
      const base = await under.serve(() => ({
        status: 500,
        reason: "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
        headers: { 'X-Some-Header': 'yes' },
        parts: ['{"data"', ':null}'],
      }));
      const response = await get(`${base}/api2/json/x`);
      expect(response.status).toBe(500);
      expect(response.reason).toBe(
        "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
      );
      expect(response.headers['x-some-header']).toBe('yes');
      expect(await readText(response.body)).toBe('{"data":null}');
    });

    it('does not follow redirects', async () => {
      const base = await under.serve(() => ({
        status: 301,
        reason: 'Moved',
        headers: { location: 'https://elsewhere.example/' },
      }));
      const response = await get(base);
      expect(response.status).toBe(301);
      expect(response.headers['location']).toBe('https://elsewhere.example/');
      await readText(response.body);
    });

    it('sends method, query, headers and each kind of body as given', async () => {
      const received: PeerRequest[] = [];
      const base = await under.serve((request) => {
        received.push(request);
        return { status: 200, reason: 'OK' };
      });
      const bodies: TransportRequest['body'][] = [
        undefined,
        'a=1&b=%3B',
        new TextEncoder().encode('bytes'),
        sized(['first,', 'sécond']),
      ];
      for (const body of bodies) {
        const response = await get(`${base}/p/a%2Fb?c=d%20e`, {
          method: 'POST',
          headers: { 'X-Token': 'abc' },
          ...(body === undefined ? {} : { body }),
        });
        await readText(response.body);
      }
      expect(received.map((request) => request.body)).toEqual([
        '',
        'a=1&b=%3B',
        'bytes',
        'first,sécond',
      ]);
      expect(new Set(received.map((request) => `${request.method} ${request.path}`))).toEqual(
        new Set(['POST /p/a%2Fb?c=d%20e']),
      );
      expect(received.every((request) => request.headers['x-token'] === 'abc')).toBe(true);
      expect(received.every((request) => request.headers['transfer-encoding'] === undefined)).toBe(
        true,
      );
    });

    it('opens a sized body again for each attempt', async () => {
      const base = await under.serve((request) => ({ status: 200, parts: [request.body] }));
      const body = sized(['twice']);
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const response = await get(base, { method: 'PUT', body });
        expect(await readText(response.body)).toBe('twice');
      }
    });

    it('rejects with Unreachable and requestSent false when no server listens', async () => {
      const base = await under.closedPort();
      await expect(get(base, { method: 'POST', body: 'x' })).rejects.toMatchObject({
        class: 'Unreachable',
        facts: { requestSent: false },
      });
    });

    it('rejects with Unreachable and requestSent true when the connection is reset', async () => {
      const base = await under.serve(() => 'reset');
      await expect(get(base, { method: 'POST', body: 'x' })).rejects.toMatchObject({
        class: 'Unreachable',
        facts: { requestSent: true },
      });
    });

    it('rejects with TimedOut when no response headers arrive in time', async () => {
      const { base, received } = await serveNothing();
      const pending = get(base, { timeoutMs: 20_000 });
      const rejection = expect(pending).rejects.toMatchObject({
        code: 'REQUEST_TIMED_OUT',
        facts: { requestSent: true },
      });
      await received;
      await under.advance(20_001);
      await rejection;
    });

    it('rejects with TimedOut when the body stalls, and says after how many bytes', async () => {
      const base = await under.serve(() => ({ status: 200, parts: ['{"da'], unfinished: true }));
      const response = await get(`${base}/api2/json/nodes?secret=1`, { timeoutMs: 20_000 });
      const parts = response.body[Symbol.asyncIterator]();
      expect((await parts.next()).value).toHaveLength(4);
      const rejection = expect(parts.next()).rejects.toMatchObject({
        code: 'REQUEST_TIMED_OUT',
        message: expect.stringMatching(
          /the answer of GET \/api2\/json\/nodes stalled after 4 bytes for [\d.]+ s/,
        ),
        facts: { requestSent: true },
      });
      await under.advance(20_001);
      await rejection;
    });

    it('lets a streamed body continue beyond the timeout', async () => {
      const base = await under.serve(() => ({
        status: 200,
        parts: ['one'],
        unfinished: true,
      }));
      const abort = new AbortController();
      const response = await get(base, {
        timeoutMs: 20_000,
        streamsResponse: true,
        signal: abort.signal,
      });
      const parts = response.body[Symbol.asyncIterator]();
      expect(new TextDecoder().decode((await parts.next()).value)).toBe('one');
      const next = parts.next();
      const rejection = expect(next).rejects.toMatchObject({ code: 'CANCELLED' });
      await under.advance(30_000);
      abort.abort();
      await rejection;
    });

    it('does not hang when the reader leaves a body early', async () => {
      const base = await under.serve(() => ({ status: 200, parts: ['one'], unfinished: true }));
      const response = await get(base);
      for await (const part of response.body) {
        expect(part.length).toBe(3);
        break;
      }
    });

    it('sends nothing when the request may no longer be sent', async () => {
      const calls: string[] = [];
      const base = await under.serve(({ method }) => {
        calls.push(method);
        return { status: 200 };
      });
      await expect(get(base, { method: 'POST', maySend: () => false })).rejects.toMatchObject({
        code: 'CANCELLED',
        facts: { requestSent: false },
      });
      await get(base, { maySend: () => true });
      expect(calls).toEqual(['GET']);
    });

    it('rejects with Cancelled when the signal aborts, before or during the wait', async () => {
      const { base, received } = await serveNothing();
      const abort = new AbortController();
      const pending = get(base, { signal: abort.signal });
      const rejection = expect(pending).rejects.toMatchObject({ code: 'CANCELLED' });
      await received;
      abort.abort();
      await rejection;
      await expect(get(base, { signal: abort.signal })).rejects.toMatchObject({
        code: 'CANCELLED',
        facts: { requestSent: false },
      });
    });
  });
}
