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

/** `silence` never answers, `reset` cuts the connection; a body of several parts waits 1 ms between them. */
export type PeerAnswer =
  | 'silence'
  | 'reset'
  | {
      readonly status: number;
      readonly reason?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly parts?: readonly string[];
      /** Leaves the body open after the last part, as a watch does. */
      readonly unfinished?: boolean;
    };

export interface TransportUnderTest {
  readonly transport: Transport;
  /** Starts a peer and names its base URL. */
  serve(peer: (request: PeerRequest) => PeerAnswer): Promise<string>;
  /** A base URL at which nobody listens. */
  nobody(): Promise<string>;
  /** Lets that much time pass, at least. */
  pass(ms: number): Promise<void>;
  cleanup(): Promise<void>;
}

export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
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
      under.transport.request({ method: 'GET', url, headTimeoutMs: 5_000, ...extra });

    it('hands over status, reason phrase, lower-case headers and body', async () => {
      const base = await under.serve(() => ({
        status: 500,
        reason: "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
        headers: { 'X-Some-Header': 'yes' },
        parts: ['{"data"', ':null}'],
      }));
      const answer = await get(`${base}/api2/json/x`);
      expect(answer.status).toBe(500);
      expect(answer.reason).toBe(
        "Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist",
      );
      expect(answer.headers['x-some-header']).toBe('yes');
      expect(await textOf(answer.body)).toBe('{"data":null}');
    });

    it('follows no redirect', async () => {
      const base = await under.serve(() => ({
        status: 301,
        reason: 'Moved',
        headers: { location: 'https://elsewhere.example/' },
      }));
      const answer = await get(base);
      expect(answer.status).toBe(301);
      expect(answer.headers['location']).toBe('https://elsewhere.example/');
      await textOf(answer.body);
    });

    it('sends method, query, headers and each kind of body as given', async () => {
      const seen: PeerRequest[] = [];
      const base = await under.serve((request) => {
        seen.push(request);
        return { status: 200, reason: 'OK' };
      });
      const bodies: TransportRequest['body'][] = [
        undefined,
        'a=1&b=%3B',
        new TextEncoder().encode('bytes'),
        sized(['first,', 'sécond']),
      ];
      for (const body of bodies) {
        const answer = await get(`${base}/p/a%2Fb?c=d%20e`, {
          method: 'POST',
          headers: { 'X-Token': 'abc' },
          ...(body === undefined ? {} : { body }),
        });
        await textOf(answer.body);
      }
      expect(seen.map((request) => request.body)).toEqual([
        '',
        'a=1&b=%3B',
        'bytes',
        'first,sécond',
      ]);
      expect(new Set(seen.map((request) => `${request.method} ${request.path}`))).toEqual(
        new Set(['POST /p/a%2Fb?c=d%20e']),
      );
      expect(seen.every((request) => request.headers['x-token'] === 'abc')).toBe(true);
      expect(seen.every((request) => request.headers['transfer-encoding'] === undefined)).toBe(
        true,
      );
    });

    it('opens a sized body anew for each attempt', async () => {
      const base = await under.serve((request) => ({ status: 200, parts: [request.body] }));
      const body = sized(['twice']);
      for (let attempt = 0; attempt < 2; attempt += 1) {
        const answer = await get(base, { method: 'PUT', body });
        expect(await textOf(answer.body)).toBe('twice');
      }
    });

    it('rejects with Unreachable when nobody listens, and knows that nothing was sent', async () => {
      const base = await under.nobody();
      await expect(get(base, { method: 'POST', body: 'x' })).rejects.toMatchObject({
        class: 'Unreachable',
        facts: { requestSent: false },
      });
    });

    it('rejects with Unreachable when the connection is cut, and does not claim that nothing was sent', async () => {
      const base = await under.serve(() => 'reset');
      await expect(get(base, { method: 'POST', body: 'x' })).rejects.toMatchObject({
        class: 'Unreachable',
        facts: { requestSent: true },
      });
    });

    it('rejects with TimedOut when no head arrives in time', async () => {
      const base = await under.serve(() => 'silence');
      const asked = get(base, { headTimeoutMs: 50 });
      const judged = expect(asked).rejects.toMatchObject({
        code: 'REQUEST_TIMED_OUT',
        facts: { requestSent: true },
      });
      await under.pass(60);
      await judged;
    });

    it('lets a body stream beyond the head timeout', async () => {
      const base = await under.serve(() => ({
        status: 200,
        parts: ['one'],
        unfinished: true,
      }));
      const abort = new AbortController();
      const answer = await get(base, { headTimeoutMs: 100, signal: abort.signal });
      const parts = answer.body[Symbol.asyncIterator]();
      expect(new TextDecoder().decode((await parts.next()).value)).toBe('one');
      const next = parts.next();
      const judged = expect(next).rejects.toMatchObject({ code: 'CANCELLED' });
      await under.pass(150);
      abort.abort();
      await judged;
    });

    it('leaves a body early without hanging', async () => {
      const base = await under.serve(() => ({ status: 200, parts: ['one'], unfinished: true }));
      const answer = await get(base);
      for await (const part of answer.body) {
        expect(part.length).toBe(3);
        break;
      }
    });

    it('rejects with Cancelled when the signal aborts, before or during the wait', async () => {
      const base = await under.serve(() => 'silence');
      const abort = new AbortController();
      const asked = get(base, { signal: abort.signal });
      const judged = expect(asked).rejects.toMatchObject({ code: 'CANCELLED' });
      await under.pass(20);
      abort.abort();
      await judged;
      await expect(get(base, { signal: abort.signal })).rejects.toMatchObject({
        code: 'CANCELLED',
        facts: { requestSent: false },
      });
    });
  });
}
