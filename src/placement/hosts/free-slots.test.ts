// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aHost, aRequest, aStorage, facts, GIB } from '../testing/builders.ts';
import { placeAll } from '../testing/place-all.ts';
import { aRandomRegion, aRandomRequest } from '../testing/random-region.ts';
import { countFreeSlots } from './choose-host.ts';

const RUNS = { numRuns: 500 };

describe('countFreeSlots', () => {
  it('returns exactly how many machines are placed one after the other', () => {
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, (request, region) => {
        const { total, isCapped } = countFreeSlots(request, region, 1_000);
        expect(isCapped).toBe(false);
        expect(placeAll(request, region).placed).toHaveLength(total);
      }),
      RUNS,
    );
  });

  it('returns for each host how many machines it takes alone', () => {
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, (request, region) => {
        const { byHost } = countFreeSlots(request, region, 1_000);
        expect(Object.keys(byHost)).toEqual(region.hosts.map(({ name }) => name).sort());
        for (const [name, slots] of Object.entries(byHost)) {
          const others = region.hosts.map((host) => host.name).filter((host) => host !== name);
          const alone = {
            ...request,
            regionHosts: { ...request.regionHosts, deny: [...request.regionHosts.deny, ...others] },
          };
          expect(placeAll(alone, region).placed).toHaveLength(slots);
        }
      }),
      RUNS,
    );
  });

  it('stops counting at the given maximum', () => {
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, fc.nat(4), (request, region, most) => {
        const all = countFreeSlots(request, region, 1_000);
        const some = countFreeSlots(request, region, most);
        expect(some.total).toBe(Math.min(all.total, most));
        expect(some.isCapped).toBe(all.total >= most);
        for (const [name, slots] of Object.entries(all.byHost)) {
          expect(some.byHost[name]).toBe(Math.min(slots, most));
        }
      }),
      RUNS,
    );
  });

  it.each([
    { limit: 'memory', cpu: 1, memory: 8, disk: 1, each: 7, total: 14 },
    { limit: 'vCPUs', cpu: 8, memory: 1, disk: 1, each: 4, total: 8 },
    { limit: 'disk, which they share', cpu: 1, memory: 1, disk: 90, each: 5, total: 5 },
    { limit: 'memory, having no disk', cpu: 1, memory: 2, disk: 0, each: 31, total: 62 },
  ])('limits two equal hosts by $limit', ({ cpu, memory, disk, each, total }) => {
    const storages = [aStorage({ name: 'nfs', shared: true })];
    const region = facts([aHost('pve1', { storages }), aHost('pve2', { storages })]);
    const size = { cpu, memoryBytes: memory * GIB, diskBytes: disk * GIB };
    expect(countFreeSlots(aRequest({ size, storages: ['nfs'] }), region, 100)).toEqual({
      total,
      isCapped: false,
      byHost: { pve1: each, pve2: each },
    });
  });

  it('counts thousands of slots on many hosts in seconds', { timeout: 10_000 }, () => {
    const names = Array.from({ length: 40 }, (_, index) => `pve${index}`);
    const region = facts(names.map((name) => aHost(name, { cpus: 256, memoryBytes: 2_048 * GIB })));
    const size = { cpu: 1, memoryBytes: 2 * GIB, diskBytes: GIB };
    expect(countFreeSlots(aRequest({ size }), region, 5_000).total).toBe(5_000);
  });
});
