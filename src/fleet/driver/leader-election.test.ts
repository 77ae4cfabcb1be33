// SPDX-License-Identifier: Apache-2.0
// Two processes with stores of their own and one cluster between them: never do both act, and who takes over waits.
import { describe, expect, it } from 'vitest';
import { Unreachable } from '../../ports/errors.ts';
import { advanceUntilSettled } from '../../ports/fakes/advance-until-settled.ts';
import { MemoryCluster } from '../../ports/fakes/memory-cluster.ts';
import { MemoryHypervisor } from '../../ports/fakes/memory-hypervisor.ts';
import { MemoryStore } from '../../ports/fakes/memory-store.ts';
import { SeededRandom } from '../../ports/fakes/seeded-random.ts';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import { DriverRegistry } from '../context/driver-lease.ts';
import type { FleetSettings } from '../context/settings.ts';
import { createFleet, type Fleet } from '../fleet.ts';
import { aHost, aPool, REGION, someSettings } from '../testing/settings.ts';
import { MAX_REQUEST_MS } from './leader-election.ts';

interface Replica {
  readonly fleet: Fleet;
  readonly cluster: MemoryCluster;
  readonly driverRegistry: DriverRegistry;
  readonly stop: AbortController;
  readonly finish: AbortController;
  readonly told: string[];
  driving: Promise<void>;
  pulses: number;
  onLeading: () => void;
}

interface Site {
  readonly clock: VirtualClock;
  readonly hypervisor: MemoryHypervisor;
  readonly a: Replica;
  readonly b: Replica;
}

function aSite(overrides: Partial<FleetSettings> = {}): Site {
  const clock = new VirtualClock();
  const hypervisor = new MemoryHypervisor({
    region: REGION,
    clock,
    random: new SeededRandom(5),
    hosts: [aHost('pve1')],
    taskMs: 1_500,
    bootMs: 3_000,
  });
  const first = new MemoryCluster({ clock, random: new SeededRandom(6) });
  const second = new MemoryCluster({ clock, random: new SeededRandom(7), state: first.state });
  const replica = (holder: string, cluster: MemoryCluster, seed: number): Replica => {
    const driverRegistry = new DriverRegistry(clock);
    const settings = someSettings([aPool({ limits: { ...aPool().limits, min: 1, max: 3 } })], {
      holder,
      ...overrides,
    });
    const fleet = createFleet({
      clock,
      store: new MemoryStore({ clock }),
      hypervisors: new Map([[REGION, hypervisor]]),
      random: new SeededRandom(seed),
      settings,
      cluster,
      driverRegistry,
    });
    return {
      fleet,
      cluster,
      driverRegistry,
      stop: new AbortController(),
      finish: new AbortController(),
      told: [],
      driving: Promise.resolve(),
      pulses: 0,
      onLeading: () => undefined,
    };
  };
  return { clock, hypervisor, a: replica('a', first, 1), b: replica('b', second, 2) };
}

function start(replica: Replica): void {
  const { fleet, stop, finish, told } = replica;
  replica.driving = fleet.runDriver({
    signal: stop.signal,
    finish: finish.signal,
    events: {
      onLeading: (isLeading) => {
        told.push(isLeading ? 'leads' : 'led');
        if (isLeading) replica.onLeading();
      },
      onHeartbeat: () => {
        replica.pulses += 1;
      },
      onWaiting: (holder) => {
        if (told.at(-1) !== `waits for ${holder}`) told.push(`waits for ${holder}`);
      },
    },
  });
}

/** Second by second; both asked at each. */
async function passes({ clock, a, b }: Site, seconds: number): Promise<number[]> {
  const together: number[] = [];
  for (let second = 0; second < seconds; second += 1) {
    await clock.advance(1_000);
    for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
    if (a.driverRegistry.mayAct() && b.driverRegistry.mayAct()) together.push(second);
  }
  return together;
}

async function end({ clock, a, b }: Site): Promise<void> {
  for (const { stop } of [a, b]) stop.abort();
  await advanceUntilSettled(clock, Promise.all([a.driving, b.driving]));
}

describe('the Lease in the cluster', () => {
  it('lets one drive; the other takes over when it is given back', async () => {
    const site = aSite();
    const { a, b } = site;
    start(a);
    await passes(site, 5);
    start(b);
    expect(await passes(site, 20)).toEqual([]);
    expect(a.told).toEqual(['leads']);
    expect(b.told).toEqual(['waits for a']);
    const views = () => site.hypervisor.calls.filter(({ method }) => method === 'view').length;
    let before = 0;
    a.cluster.onCall = ({ method }) => {
      if (method === 'releaseLease') before = views();
    };
    a.finish.abort();
    await advanceUntilSettled(site.clock, a.driving);
    let atTakeOver = 0;
    b.onLeading = () => {
      atTakeOver = views();
    };
    await passes(site, 5);
    expect(b.told).toEqual(['waits for a', 'leads']);
    expect(atTakeOver - before).toBe(2);
    await end(site);
  });

  it.each([
    ['is under way', undefined, MAX_REQUEST_MS],
    ['was answered', 'settled', 0],
    ['may still take effect', 'unknown', MAX_REQUEST_MS],
  ] as const)('is given back with a request that %s', async (_what, how, waitMs) => {
    const site = aSite();
    const { a, b, clock } = site;
    start(a);
    await passes(site, 5);
    start(b);
    await passes(site, 5);
    const ended = a.driverRegistry.beginRequest();
    if (how !== undefined) ended(how);
    a.finish.abort();
    await advanceUntilSettled(clock, a.driving);
    const gaveBackAt = clock.monotonic();
    while (!b.told.includes('leads')) await passes(site, 1);
    const tookMs = clock.monotonic() - gaveBackAt;
    expect(tookMs).toBeGreaterThanOrEqual(waitMs);
    expect(tookMs).toBeLessThan(waitMs + 6_000);
    await end(site);
  });

  it('keeps a successor waiting that comes after it was given back, too', async () => {
    const site = aSite();
    const { a, b } = site;
    start(a);
    await passes(site, 5);
    a.driverRegistry.beginRequest()('unknown');
    await passes(site, 10);
    a.finish.abort();
    await advanceUntilSettled(site.clock, a.driving);
    start(b);
    await passes(site, MAX_REQUEST_MS / 1_000 - 12);
    expect(b.told).toEqual([]);
    await passes(site, 8);
    expect(b.told).toEqual(['leads']);
    await end(site);
  });

  it('is had at once by who comes after it was given back with nothing left to wait for', async () => {
    const site = aSite();
    const { a, b } = site;
    start(a);
    await passes(site, 5);
    a.finish.abort();
    await advanceUntilSettled(site.clock, a.driving);
    start(b);
    await passes(site, 1);
    expect(b.told).toEqual(['leads']);
    await end(site);
  });

  it('is not taken for given back when it was torn away and the answer got lost', async () => {
    const site = aSite();
    const { a, b } = site;
    start(a);
    await passes(site, 5);
    start(b);
    await passes(site, 5);
    a.cluster.disconnect();
    while (a.driverRegistry.mayAct()) await passes(site, 1);
    b.cluster.dropResponse('acquireLease');
    while (b.cluster.state.leases.get('reconcile')?.holder !== 'b') await passes(site, 1);
    const takenAt = site.clock.monotonic();
    while (!b.told.includes('leads')) {
      expect(site.clock.monotonic() - takenAt).toBeLessThan(2 * MAX_REQUEST_MS);
      await passes(site, 1);
    }
    expect(site.clock.monotonic() - takenAt).toBeGreaterThanOrEqual(MAX_REQUEST_MS - 1_000);
    await end(site);
  });

  it('is given back with the rest of the waiting by who is called off in the middle of it', async () => {
    const site = aSite();
    const { a, b } = site;
    start(a);
    await passes(site, 5);
    start(b);
    await passes(site, 5);
    a.cluster.disconnect();
    const lease = () => b.cluster.state.leases.get('reconcile');
    while (lease()?.holder !== 'b') await passes(site, 1);
    await passes(site, 10);
    b.finish.abort();
    await advanceUntilSettled(site.clock, b.driving);
    expect(lease()?.holder).toBe('');
    const leftMs = (lease()?.durationMs ?? 0) - 1_000;
    expect(leftMs).toBeGreaterThanOrEqual(MAX_REQUEST_MS - 12_000);
    expect(leftMs).toBeLessThan(MAX_REQUEST_MS);
    expect(b.told).not.toContain('leads');
    await end(site);
  });

  it('is not acted on by two when somebody removes it', async () => {
    const site = aSite();
    const { a, b } = site;
    start(a);
    await passes(site, 5);
    start(b);
    await passes(site, 7);
    a.cluster.state.leases.delete('reconcile');
    expect(await passes(site, 200)).toEqual([]);
    expect([...a.told, ...b.told].filter((one) => one === 'leads').length).toBeGreaterThan(1);
    await end(site);
  });

  it('stops a driver that cannot renew it before another may begin', async () => {
    const site = aSite();
    const { a, b } = site;
    start(a);
    await passes(site, 5);
    start(b);
    await passes(site, 5);
    a.cluster.disconnect();
    while (a.driverRegistry.mayAct()) await passes(site, 1);
    expect(b.driverRegistry.mayAct()).toBe(false);
    const together = await passes(site, 200);
    expect(together).toEqual([]);
    expect(a.told.slice(0, 2)).toEqual(['leads', 'led']);
    expect(b.told).toContain('leads');
    // It stopped a longest request before the end of its lease; the other began a longest request after it.
    const calls = site.hypervisor.calls.filter(({ method }) => method === 'createVm');
    expect(calls).toHaveLength(1);
    await end(site);
  });

  it.each([
    ['two more looks at Proxmox', 0],
    ['two that succeeded', 3],
  ])('is not taken over before %s', async (_, failures) => {
    const site = aSite();
    const { a, b, hypervisor } = site;
    start(a);
    await passes(site, 5);
    start(b);
    await passes(site, 5);
    a.cluster.disconnect();
    while (a.driverRegistry.mayAct()) await passes(site, 1);
    const views = () => hypervisor.calls.filter(({ method }) => method === 'view').length;
    const before = views();
    for (let count = 0; count < failures; count += 1) {
      hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'nobody answers'));
    }
    let atTakeOver = 0;
    b.onLeading = () => {
      atTakeOver = views();
    };
    while (!b.told.includes('leads')) await passes(site, 1);
    expect(atTakeOver - before).toBe(2 + failures);
    await end(site);
  });

  it('waits out the longest request, however long the config lets one take', async () => {
    const maxRequestMs = 120_000;
    const site = aSite({ maxRequestMs });
    const { a, b } = site;
    start(a);
    await passes(site, 5);
    start(b);
    await passes(site, 5);
    a.cluster.disconnect();
    while (a.driverRegistry.mayAct()) await passes(site, 1);
    const stoppedAt = site.clock.monotonic();
    let longestSilence = 0;
    for (let silence = 0; !b.told.includes('leads'); silence += 1) {
      const before = b.pulses;
      await passes(site, 1);
      if (b.pulses > before) silence = 0;
      longestSilence = Math.max(longestSilence, silence);
    }
    expect(longestSilence).toBeLessThan(10);
    expect(site.clock.monotonic() - stoppedAt).toBeGreaterThanOrEqual(2 * maxRequestMs - 2_000);
    await end(site);
  });
});
