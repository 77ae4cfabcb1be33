// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aRandomRegion, aRandomRequest } from '../testing/random-region.ts';
import { chooseHost } from './choose-host.ts';
import type { RegionFacts, Reservation } from './facts.ts';
import { freeSlots } from './free-slots.ts';
import { HostLedger } from './host-ledger.ts';
import type { PlacementRequest } from './request.ts';

/** What happens to a region: somebody looks at it, or the records of its machines become these. */
const steps = fc.array(
  fc.record({ region: aRandomRegion, isLook: fc.boolean(), isSeenTwice: fc.boolean() }),
  { minLength: 1, maxLength: 6 },
);

function keep(ledger: HostLedger, held: Map<string, Reservation>, now: RegionFacts): void {
  const after = new Map(now.reservations.map((one) => [`of ${one.vmId}`, one]));
  for (const id of held.keys()) if (!after.has(id)) ledger.reserve(id, undefined);
  for (const [id, one] of after) ledger.reserve(id, one);
  held.clear();
  for (const [id, one] of after) held.set(id, one);
}

function judged(request: PlacementRequest, facts: RegionFacts) {
  return { choice: chooseHost(request, facts), slots: freeSlots(request, facts, 20) };
}

describe('a ledger that is kept change by change', () => {
  it('says what one says that is made anew', () => {
    fc.assert(
      fc.property(aRandomRequest, aRandomRegion, steps, (request, region, changes) => {
        const ledger = new HostLedger();
        const held = new Map<string, Reservation>();
        let facts: RegionFacts = { ...region, vms: [], reservations: [] };
        for (const { region: next, isLook, isSeenTwice } of changes) {
          if (isLook) ledger.look(next.vms);
          else keep(ledger, held, next);
          if (isLook && isSeenTwice) ledger.look(next.vms.map((vm) => ({ ...vm })));
          facts = {
            ...facts,
            ...(isLook ? { vms: next.vms } : { reservations: next.reservations }),
          };
          const withDisk = facts.reservations.filter((one) => one.pendingDiskBytes > 0);
          const kept = { ...facts, vms: [], reservations: withDisk, ledger };
          expect(judged(request, kept)).toEqual(judged(request, facts));
        }
      }),
    );
  });

  it('counts a VM that two machines claim once, and both where it is not seen', () => {
    const ledger = new HostLedger();
    const one = { vmId: 100, pool: 'small', host: 'pve1', storage: 'fast', pendingDiskBytes: 0 };
    ledger.reserve('a', { ...one, cpus: 2, memoryBytes: 10 });
    ledger.reserve('b', { ...one, cpus: 3, memoryBytes: 20, host: 'pve2', pool: 'large' });
    expect(ledger.tally('pve1')).toMatchObject({ cpus: 2, memoryBytes: 10, vms: 1 });
    expect(ledger.tally('pve2')).toMatchObject({ cpus: 3, memoryBytes: 20, vms: 1 });
    const seen = { vmId: 100, host: 'pve3', power: 'running', isTemplate: false } as const;
    ledger.look([{ ...seen, cpus: 1, memoryBytes: 30 }]);
    expect(ledger.tally('pve1')).toMatchObject({ cpus: 0, memoryBytes: 0, vms: 0 });
    expect(ledger.tally('pve3')).toMatchObject({ cpus: 3, memoryBytes: 30, vms: 1 });
    ledger.reserve('b', undefined);
    expect(ledger.tally('pve3')).toMatchObject({ cpus: 2, memoryBytes: 30, vms: 1 });
    ledger.look([]);
    ledger.reserve('a', undefined);
    expect(ledger.tally('pve3')).toMatchObject({ cpus: 0, memoryBytes: 0, vms: 0 });
  });
});
