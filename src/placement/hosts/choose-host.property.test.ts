// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { placeAll } from '../testing/place-all.ts';
import { aRandomRegion, aRandomRequest } from '../testing/random-region.ts';
import { chooseHost, countFreeSlots } from './choose-host.ts';
import { type PlacementRequest, REFUSAL_REASONS } from './decision.ts';
import type { RegionFacts } from './facts.ts';

const RUNS = { numRuns: 500 };

function shuffled(region: RegionFacts): RegionFacts {
  return {
    hosts: region.hosts
      .map((host) => ({
        ...host,
        storages: host.storages.toReversed(),
      }))
      .toReversed(),
    vms: region.vms.toReversed(),
    reservations: region.reservations.toReversed(),
    busyHosts: region.busyHosts?.toReversed(),
    unreadHosts: region.unreadHosts,
  };
}

type Sized = { readonly cpus: number | undefined; readonly memoryBytes: number | undefined };

/** Computed independently of the code under test: sums over the plain facts, by VM id, in exact integers. */
function usedOn(host: string, request: PlacementRequest, region: RegionFacts) {
  const counts = ({ isTemplate, power }: RegionFacts['vms'][number]) =>
    !isTemplate && !(power === 'stopped' && request.countsStopped === false);
  const placeOf = (id: number) =>
    [...region.vms, ...region.reservations].find(({ vmId }) => vmId === id)?.host;
  const sizes = new Map<number, Sized[]>();
  for (const one of [...region.vms.filter(counts), ...region.reservations]) {
    if (placeOf(one.vmId) === host) sizes.set(one.vmId, [...(sizes.get(one.vmId) ?? []), one]);
  }
  const sum = (key: keyof Sized) =>
    [...sizes.values()]
      .map((claims) => BigInt(Math.max(...claims.map((one) => one[key] ?? 0))))
      .reduce((total, largest) => total + largest, 0n);
  return { memory: sum('memoryBytes'), cpus: sum('cpus') };
}

describe('chooseHost, for random regions', () => {
  it('never allocates more than the rules allow', () => {
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, (request, region) => {
        const { placed, facts } = placeAll(request, region);
        const { memoryOvercommit, memoryReserveBytes, cpuOvercommit } = request.placement;
        for (const name of new Set(placed.map(({ host }) => host))) {
          const host = region.hosts.find((one) => one.name === name)!;
          const used = usedOn(name, request, facts);
          const percent = (factor: number) => BigInt(Math.round(factor * 100));
          const reserve = BigInt(memoryReserveBytes) * 100n;
          expect(
            used.memory * 100n + reserve <= BigInt(host.memoryBytes) * percent(memoryOvercommit),
          ).toBe(true);
          expect(used.cpus * 100n <= BigInt(host.cpus) * percent(cpuOvercommit)).toBe(true);
          expect(request.size.cpu).toBeLessThanOrEqual(host.cpus);
        }
      }),
      RUNS,
    );
  });

  it('never reserves more disk than a storage has, counting shared storages once', () => {
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, (request, region) => {
        const { placed, facts } = placeAll(request, region);
        for (const { host, storage } of placed) {
          const reading = region.hosts
            .find((one) => one.name === host)!
            .storages.find((one) => one.name === storage)!;
          expect(reading.active && reading.content.includes('images')).toBe(true);
          const isThin = request.thinStorages?.includes(storage) ?? false;
          const pending = facts.reservations
            .filter((one) => one.storage === storage && (reading.shared || one.host === host))
            .reduce((sum, one) => sum + one.pendingDiskBytes, 0);
          expect(pending).toBeLessThanOrEqual(isThin ? reading.totalBytes : reading.freeBytes);
        }
      }),
      RUNS,
    );
  });

  it('chooses only hosts that are allowed, online, read and not busy', () => {
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, (request, region) => {
        const decision = chooseHost(request, region);
        if (!decision.placed) return;
        const { host } = decision;
        expect(region.hosts.find(({ name }) => name === host)?.online).toBe(true);
        expect(region.busyHosts).not.toContain(host);
        expect(region.unreadHosts).not.toContain(host);
        for (const { allow, deny } of [request.regionHosts, request.placement.hosts]) {
          expect(allow.length === 0 || allow.includes(host)).toBe(true);
          expect(deny).not.toContain(host);
        }
      }),
      RUNS,
    );
  });

  it('explains every host, with finite numbers', () => {
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, (request, region) => {
        const decision = chooseHost(request, region);
        const reasons = decision.placed ? decision.others : decision.refusals;
        const names = new Set(reasons.map(({ host }) => host));
        if (decision.placed) names.add(decision.host);
        for (const { name } of region.hosts) expect(names).toContain(name);
        for (const { host, reason, message, numbers } of reasons) {
          expect([...REFUSAL_REASONS, 'AnotherPreferred']).toContain(reason);
          expect(message).toContain(`host ${host}`);
          expect(message).not.toMatch(/NaN|undefined|Infinity/);
          expect(Object.values(numbers)).not.toContain(Number.NaN);
        }
      }),
      RUNS,
    );
  });

  it('does not depend on the order of the facts', () => {
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, (request, region) => {
        expect(chooseHost(request, shuffled(region))).toEqual(chooseHost(request, region));
        expect(countFreeSlots(request, shuffled(region), 50)).toEqual(
          countFreeSlots(request, region, 50),
        );
      }),
      RUNS,
    );
  });
});

describe('the random regions', () => {
  it('cover placements and many refusal reasons often enough', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, (request, region) => {
        const decision = chooseHost(request, region);
        const reasons = decision.placed ? decision.others : decision.refusals;
        for (const word of [
          decision.placed ? 'placed' : decision.code,
          ...reasons.map(({ reason }) => reason),
        ]) {
          seen.set(word, (seen.get(word) ?? 0) + 1);
        }
      }),
      { numRuns: 1_000, seed: 1 },
    );
    expect(seen.get('placed')).toBeGreaterThan(400);
    for (const reason of [...REFUSAL_REASONS, 'AnotherPreferred']) {
      expect(seen.get(reason), reason).toBeGreaterThan(5);
    }
  });
});
