// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { RECONCILE_LEASE } from '../../model/lease.ts';
import { LostLeadership } from '../../ports/errors.ts';
import type { Hypervisor } from '../../ports/hypervisor.ts';
import { MUTATING_HYPERVISOR_CALLS } from '../testing/crashing-process.ts';
import { aPool, someSettings } from '../testing/settings.ts';
import { aFleet, aTestFleet, phasesIn, REASON, type TestFleet } from '../testing/test-fleet.ts';

const LEASE_MS = 60_000;

/** Counts reads, and records mutating calls made after the lease has expired. */
class CallObserver {
  reads = 0;
  leaseEndsAt = 0;
  readonly lateCalls: string[] = [];
  readonly hypervisor: Hypervisor;

  /** The lease expires during read number `expireInRead`, as if the process had been frozen. */
  constructor({ hypervisor, clock }: TestFleet, expireInRead: number) {
    this.hypervisor = new Proxy<Hypervisor>(hypervisor, {
      get: (target, name, receiver) => {
        const member: unknown = Reflect.get(target, name, receiver);
        if (typeof member !== 'function' || name === 'volumeId') return member;
        return (...args: unknown[]) => {
          if (MUTATING_HYPERVISOR_CALLS.some((one) => one === name)) {
            if (clock.now() >= this.leaseEndsAt) this.lateCalls.push(String(name));
          } else {
            this.reads += 1;
            if (this.reads === expireInRead) clock.setWallClock(this.leaseEndsAt);
          }
          return member.apply(target, args) as unknown;
        };
      },
    });
  }
}

/** Creates one machine and deletes it again; ends when the lease has expired. */
async function createAndDelete(testFleet: TestFleet, observer: CallObserver): Promise<void> {
  const settings = someSettings([aPool()]);
  const fleet = aFleet({ ...testFleet, hypervisor: observer.hypervisor, settings, seed: 2 });
  for (const size of [1, 0]) {
    await fleet.scaleTo('workers', size, REASON);
    for (let pass = 0; pass < 60; pass += 1) {
      const lease = await testFleet.store.leases.acquire({
        name: RECONCILE_LEASE,
        holder: 'test',
        durationMs: LEASE_MS,
      });
      observer.leaseEndsAt = lease.expiresAt;
      await fleet.reconcileOnce(lease);
      await testFleet.clock.advance(1_000);
      const phases = await phasesIn(testFleet.store);
      if (phases.every((phase) => phase === (size === 1 ? 'ready' : 'gone'))) break;
    }
  }
}

describe('a lease that expires while a process is frozen', () => {
  it('prevents every later mutating call, whichever read the process was frozen in', async () => {
    const whole = aTestFleet();
    const all = new CallObserver(whole, Number.POSITIVE_INFINITY);
    await createAndDelete(whole, all);
    expect(await phasesIn(whole.store)).toEqual(['gone']);
    expect(all.reads).toBeGreaterThan(20);

    let refused = 0;
    for (let read = 1; read <= all.reads; read += 1) {
      const testFleet = aTestFleet();
      const observer = new CallObserver(testFleet, read);
      const error = await createAndDelete(testFleet, observer).catch((thrown: unknown) => thrown);
      if (error instanceof LostLeadership) refused += 1;
      else expect(error, `read ${read}`).toBeUndefined();
      expect(observer.lateCalls, `read ${read}`).toEqual([]);
    }
    expect(refused).toBeGreaterThan(10);
  });
});
