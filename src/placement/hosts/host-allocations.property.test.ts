// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aRandomRegion, aRandomRequest } from '../testing/random-region.ts';
import { chooseHost, countFreeSlots } from './choose-host.ts';
import type { PlacementRequest } from './decision.ts';
import type { RegionFacts, Reservation } from './facts.ts';
import { HostAllocations } from './host-allocations.ts';

/** A change of a region: either a new list of VMs, or new machine records. */
const steps = fc.array(
  fc.record({ region: aRandomRegion, isVmUpdate: fc.boolean(), isSeenTwice: fc.boolean() }),
  { minLength: 1, maxLength: 6 },
);

function setReservations(
  allocations: HostAllocations,
  held: Map<string, Reservation>,
  now: RegionFacts,
): void {
  const after = new Map(now.reservations.map((one) => [`of ${one.vmId}`, one]));
  for (const id of held.keys()) if (!after.has(id)) allocations.setReservation(id, undefined);
  for (const [id, one] of after) allocations.setReservation(id, one);
  held.clear();
  for (const [id, one] of after) held.set(id, one);
}

function decide(request: PlacementRequest, facts: RegionFacts) {
  return { choice: chooseHost(request, facts), slots: countFreeSlots(request, facts, 20) };
}

describe('HostAllocations, updated incrementally', () => {
  it('equals allocations computed from scratch', () => {
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, steps, (request, region, changes) => {
        const allocations = new HostAllocations();
        const held = new Map<string, Reservation>();
        let facts: RegionFacts = { ...region, vms: [], reservations: [] };
        for (const { region: next, isVmUpdate, isSeenTwice } of changes) {
          if (isVmUpdate) allocations.setVms(next.vms);
          else setReservations(allocations, held, next);
          if (isVmUpdate && isSeenTwice) allocations.setVms(next.vms.map((vm) => ({ ...vm })));
          facts = {
            ...facts,
            ...(isVmUpdate ? { vms: next.vms } : { reservations: next.reservations }),
          };
          const withDisk = facts.reservations.filter((one) => one.pendingDiskBytes > 0);
          const kept = { ...facts, vms: [], reservations: withDisk, allocations };
          expect(decide(request, kept)).toEqual(decide(request, facts));
        }
      }),
    );
  });

  it('counts an existing VM that two machines reserve once, and both reservations if the VM does not exist', () => {
    const allocations = new HostAllocations();
    const one = { vmId: 100, pool: 'small', host: 'pve1', storage: 'fast', pendingDiskBytes: 0 };
    allocations.setReservation('a', { ...one, cpus: 2, memoryBytes: 10 });
    allocations.setReservation('b', {
      ...one,
      cpus: 3,
      memoryBytes: 20,
      host: 'pve2',
      pool: 'large',
    });
    expect(allocations.allocationOf('pve1')).toMatchObject({ cpus: 2, memoryBytes: 10, vms: 1 });
    expect(allocations.allocationOf('pve2')).toMatchObject({ cpus: 3, memoryBytes: 20, vms: 1 });
    const seen = { vmId: 100, host: 'pve3', power: 'running', isTemplate: false } as const;
    allocations.setVms([{ ...seen, cpus: 1, memoryBytes: 30 }]);
    expect(allocations.allocationOf('pve1')).toMatchObject({ cpus: 0, memoryBytes: 0, vms: 0 });
    expect(allocations.allocationOf('pve3')).toMatchObject({ cpus: 3, memoryBytes: 30, vms: 1 });
    allocations.setReservation('b', undefined);
    expect(allocations.allocationOf('pve3')).toMatchObject({ cpus: 2, memoryBytes: 30, vms: 1 });
    allocations.setVms([]);
    allocations.setReservation('a', undefined);
    expect(allocations.allocationOf('pve3')).toMatchObject({ cpus: 0, memoryBytes: 0, vms: 0 });
  });
});
