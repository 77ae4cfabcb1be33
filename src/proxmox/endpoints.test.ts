// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { type ConcurrencyLimit, Endpoints } from './endpoints.ts';

describe('Endpoints', () => {
  const clock = new VirtualClock();
  const make = (...origins: string[]) =>
    new Endpoints(origins, { clock, cooldownMs: 30_000, maxConcurrentRequests: 2 });

  it('adds the default scheme and port', () => {
    const origins = (list: Endpoints) => list.orderedFor().map((one) => one.origin);
    expect(origins(make('pve1.example', 'https://10.0.0.1/', 'https://x:443', '[::1]:99'))).toEqual(
      ['https://pve1.example:8006', 'https://10.0.0.1:8006', 'https://x', 'https://[::1]:99'],
    );
    expect(origins(make('http://pve1', 'http://x:80', 'a-https://b'))).toEqual([
      'http://pve1:8006',
      'http://x',
      'https://a-https:8006',
    ]);
    expect(() => make('https://')).toThrow('invalid Proxmox endpoint');
    expect(() => make()).toThrow('no endpoint');
  });

  it('orders a failed endpoint last during its cooldown, and the endpoint on the given host first', async () => {
    // Not at the beginning of time, where the age of a failure and its time are equal.
    await clock.advance(100_000);
    const list = make('pve1', 'pve2.lan', 'pve3');
    const names = (near?: string) => list.orderedFor(near).map((one) => one.hostname);
    expect(names('pve2')).toEqual(['pve2.lan', 'pve1', 'pve3']);
    const [first] = list.orderedFor();
    list.markFailed(first!);
    expect(names()).toEqual(['pve2.lan', 'pve3', 'pve1']);
    expect(names('pve1')).toEqual(['pve2.lan', 'pve3', 'pve1']);
    await clock.advance(30_000);
    expect(names()).toEqual(['pve1', 'pve2.lan', 'pve3']);
    list.markFailed(first!);
    list.markResponsive(first!);
    expect(names()[0]).toBe('pve1');
  });

  it('rejects the requests that wait for a failed endpoint, unless all endpoints failed', async () => {
    const list = make('pve1', 'pve2');
    const [first, second] = list.orderedFor();
    const occupy = (limit: ConcurrencyLimit, count: number) => {
      for (let at = 0; at < count; at += 1) void limit.run(() => new Promise(() => undefined));
    };
    occupy(first!.requestLimit, 2);
    occupy(first!.guestRequestLimit, 8);
    occupy(second!.requestLimit, 2);
    const waiting = [
      first!.requestLimit.run(() => Promise.resolve()),
      first!.guestRequestLimit.run(() => Promise.resolve()),
    ];
    const abort = new AbortController();
    const kept = second!.requestLimit.run(() => Promise.resolve(), abort.signal);
    const rejections = waiting.map((one) =>
      expect(one).rejects.toMatchObject({
        code: 'PVE_UNREACHABLE',
        message: 'endpoint https://pve1:8006 does not respond',
        facts: { requestSent: false },
      }),
    );
    list.markFailed(first!);
    await Promise.all(rejections);
    list.markFailed(second!);
    const rejection = expect(kept).rejects.toMatchObject({
      code: 'CANCELLED',
      message: 'the caller aborted the request while it was queued',
    });
    abort.abort();
    await rejection;
  });
});
