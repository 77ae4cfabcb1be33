// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import { Endpoints } from './endpoints.ts';

describe('Endpoints', () => {
  const clock = new VirtualClock();
  const make = (...origins: string[]) =>
    new Endpoints(origins, { clock, cooldownMs: 30_000, maxConcurrentRequests: 2 });

  it('adds the default scheme and port', () => {
    const origins = (list: Endpoints) => list.orderedFor().map((one) => one.origin);
    expect(origins(make('pve1.example', 'https://10.0.0.1/', 'https://x:443', '[::1]:99'))).toEqual(
      ['https://pve1.example:8006', 'https://10.0.0.1:8006', 'https://x', 'https://[::1]:99'],
    );
    expect(() => make('https://')).toThrow('invalid Proxmox endpoint');
    expect(() => make()).toThrow('no endpoint');
  });

  it('orders a failed endpoint last during its cooldown, and the endpoint on the given host first', async () => {
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
});
