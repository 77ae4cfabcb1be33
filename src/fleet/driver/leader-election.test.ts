// SPDX-License-Identifier: Apache-2.0
// Two processes with separate stores and one cluster: they never act at the same time, and a successor waits first.
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
import { LeaderElection, MAX_REQUEST_MS } from './leader-election.ts';

interface Replica {
  readonly fleet: Fleet;
  readonly cluster: MemoryCluster;
  readonly driverRegistry: DriverRegistry;
  readonly stop: AbortController;
  readonly finish: AbortController;
  readonly transitions: string[];
  driving: Promise<void>;
  heartbeats: number;
  readonly separateStores: string[];
  onLeading: () => void;
}

interface TwoReplicas {
  readonly clock: VirtualClock;
  readonly hypervisor: MemoryHypervisor;
  readonly a: Replica;
  readonly b: Replica;
}

function twoReplicas(overrides: Partial<FleetSettings> = {}): TwoReplicas {
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
      transitions: [],
      driving: Promise.resolve(),
      heartbeats: 0,
      separateStores: [],
      onLeading: () => undefined,
    };
  };
  return { clock, hypervisor, a: replica('a', first, 1), b: replica('b', second, 2) };
}

function start(replica: Replica): void {
  const { fleet, stop, finish, transitions, separateStores } = replica;
  replica.driving = fleet.runDriver({
    signal: stop.signal,
    finish: finish.signal,
    events: {
      onLeading: (isLeading) => {
        transitions.push(isLeading ? 'leading' : 'not leading');
        if (isLeading) replica.onLeading();
      },
      onSeparateStore: (holder) => separateStores.push(holder),
      onHeartbeat: () => {
        replica.heartbeats += 1;
      },
      onWaiting: (holder) => {
        if (transitions.at(-1) !== `waiting for ${holder}`)
          transitions.push(`waiting for ${holder}`);
      },
    },
  });
}

/** Advances the clock second by second; returns the seconds in which both replicas were allowed to act. */
async function advanceSeconds({ clock, a, b }: TwoReplicas, seconds: number): Promise<number[]> {
  const bothActing: number[] = [];
  for (let second = 0; second < seconds; second += 1) {
    await clock.advance(1_000);
    for (let tick = 0; tick < 50; tick += 1) await Promise.resolve();
    if (a.driverRegistry.mayAct() && b.driverRegistry.mayAct()) bothActing.push(second);
  }
  return bothActing;
}

async function end({ clock, a, b }: TwoReplicas): Promise<void> {
  for (const { stop } of [a, b]) stop.abort();
  await advanceUntilSettled(clock, Promise.all([a.driving, b.driving]));
}

describe('leader election through the Lease of the cluster', () => {
  it('one replica drives; the other takes over when the Lease is released', async () => {
    const replicas = twoReplicas();
    const { a, b } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    start(b);
    expect(await advanceSeconds(replicas, 20)).toEqual([]);
    expect(a.transitions).toEqual(['leading']);
    expect(b.transitions).toEqual(['waiting for a']);
    const views = () => replicas.hypervisor.calls.filter(({ method }) => method === 'view').length;
    let before = 0;
    a.cluster.onCall = ({ method }) => {
      if (method === 'releaseLease') before = views();
    };
    a.finish.abort();
    await advanceUntilSettled(replicas.clock, a.driving);
    let atTakeOver = 0;
    b.onLeading = () => {
      atTakeOver = views();
    };
    await advanceSeconds(replicas, 5);
    expect(b.transitions).toEqual(['waiting for a', 'leading']);
    expect(atTakeOver - before).toBe(2);
    await end(replicas);
  });

  it.each([
    ['is in progress', undefined, MAX_REQUEST_MS],
    ['has ended', 'settled', 0],
    ['may still take effect', 'unknown', MAX_REQUEST_MS],
  ] as const)(
    'a released Lease delays the successor only as long as needed when a request %s',
    async (_state, outcome, waitMs) => {
      const replicas = twoReplicas();
      const { a, b, clock } = replicas;
      start(a);
      await advanceSeconds(replicas, 5);
      start(b);
      await advanceSeconds(replicas, 5);
      const ended = a.driverRegistry.beginRequest();
      if (outcome !== undefined) ended(outcome);
      a.finish.abort();
      await advanceUntilSettled(clock, a.driving);
      const releasedAt = clock.monotonic();
      while (!b.transitions.includes('leading')) await advanceSeconds(replicas, 1);
      const tookMs = clock.monotonic() - releasedAt;
      expect(tookMs).toBeGreaterThanOrEqual(waitMs);
      expect(tookMs).toBeLessThan(waitMs + 6_000);
      await end(replicas);
    },
  );

  it('a successor that starts after the release waits until the last request can no longer take effect', async () => {
    const replicas = twoReplicas();
    const { a, b } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    a.driverRegistry.beginRequest()('unknown');
    await advanceSeconds(replicas, 10);
    a.finish.abort();
    await advanceUntilSettled(replicas.clock, a.driving);
    start(b);
    await advanceSeconds(replicas, MAX_REQUEST_MS / 1_000 - 12);
    expect(b.transitions).toEqual([]);
    await advanceSeconds(replicas, 8);
    expect(b.transitions).toEqual(['leading']);
    await end(replicas);
  });

  it('a replica that starts after a clean release acquires the Lease at once', async () => {
    const replicas = twoReplicas();
    const { a, b } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    a.finish.abort();
    await advanceUntilSettled(replicas.clock, a.driving);
    start(b);
    await advanceSeconds(replicas, 1);
    expect(b.transitions).toEqual(['leading']);
    await end(replicas);
  });

  it('a takeover whose response was lost is not mistaken for a release', async () => {
    const replicas = twoReplicas();
    const { a, b } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    start(b);
    await advanceSeconds(replicas, 5);
    a.cluster.disconnect();
    while (a.driverRegistry.mayAct()) await advanceSeconds(replicas, 1);
    b.cluster.dropResponse('acquireLease');
    while (b.cluster.state.leases.get('reconcile')?.holder !== 'b')
      await advanceSeconds(replicas, 1);
    const takenAt = replicas.clock.monotonic();
    while (!b.transitions.includes('leading')) {
      expect(replicas.clock.monotonic() - takenAt).toBeLessThan(2 * MAX_REQUEST_MS);
      await advanceSeconds(replicas, 1);
    }
    expect(replicas.clock.monotonic() - takenAt).toBeGreaterThanOrEqual(MAX_REQUEST_MS - 1_000);
    await end(replicas);
  });

  it('a successor that stops while it waits releases the Lease with the remaining wait', async () => {
    const replicas = twoReplicas();
    const { a, b } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    start(b);
    await advanceSeconds(replicas, 5);
    a.cluster.disconnect();
    const lease = () => b.cluster.state.leases.get('reconcile');
    while (lease()?.holder !== 'b') await advanceSeconds(replicas, 1);
    await advanceSeconds(replicas, 10);
    b.finish.abort();
    await advanceUntilSettled(replicas.clock, b.driving);
    expect(lease()?.holder).toBe('');
    const leftMs = (lease()?.durationMs ?? 0) - 1_000;
    expect(leftMs).toBeGreaterThanOrEqual(MAX_REQUEST_MS - 12_000);
    expect(leftMs).toBeLessThan(MAX_REQUEST_MS);
    expect(b.transitions).not.toContain('leading');
    await end(replicas);
  });

  it('two replicas never act at the same time after the Lease was deleted', async () => {
    const replicas = twoReplicas();
    const { a, b } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    start(b);
    await advanceSeconds(replicas, 7);
    a.cluster.state.leases.delete('reconcile');
    expect(await advanceSeconds(replicas, 200)).toEqual([]);
    expect(
      [...a.transitions, ...b.transitions].filter((one) => one === 'leading').length,
    ).toBeGreaterThan(1);
    await end(replicas);
  });

  it('a driver that cannot renew the Lease stops before another may act', async () => {
    const replicas = twoReplicas();
    const { a, b } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    start(b);
    await advanceSeconds(replicas, 5);
    a.cluster.disconnect();
    while (a.driverRegistry.mayAct()) await advanceSeconds(replicas, 1);
    expect(b.driverRegistry.mayAct()).toBe(false);
    const bothActing = await advanceSeconds(replicas, 200);
    expect(bothActing).toEqual([]);
    expect(a.transitions.slice(0, 2)).toEqual(['leading', 'not leading']);
    expect(b.transitions).toContain('leading');
    // The old driver stops MAX_REQUEST_MS before its Lease expires; the new one starts MAX_REQUEST_MS after that.
    const calls = replicas.hypervisor.calls.filter(({ method }) => method === 'createVm');
    expect(calls).toHaveLength(1);
    await end(replicas);
  });

  it.each([
    ['were made', 0],
    ['succeeded after failures', 3],
  ])('a replica does not lead before two reads of Proxmox %s', async (_, failures) => {
    const replicas = twoReplicas();
    const { a, b, hypervisor } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    start(b);
    await advanceSeconds(replicas, 5);
    a.cluster.disconnect();
    while (a.driverRegistry.mayAct()) await advanceSeconds(replicas, 1);
    const views = () => hypervisor.calls.filter(({ method }) => method === 'view').length;
    const before = views();
    for (let count = 0; count < failures; count += 1) {
      hypervisor.failNext('view', new Unreachable('PVE_UNREACHABLE', 'connection refused'));
    }
    let atTakeOver = 0;
    b.onLeading = () => {
      atTakeOver = views();
    };
    while (!b.transitions.includes('leading')) await advanceSeconds(replicas, 1);
    expect(atTakeOver - before).toBe(2 + failures);
    await end(replicas);
  });

  it('a successor waits for the longest request that the config allows, and keeps sending heartbeats', async () => {
    const maxRequestMs = 120_000;
    const replicas = twoReplicas({ maxRequestMs });
    const { a, b } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    start(b);
    await advanceSeconds(replicas, 5);
    a.cluster.disconnect();
    while (a.driverRegistry.mayAct()) await advanceSeconds(replicas, 1);
    const stoppedAt = replicas.clock.monotonic();
    let longestSilence = 0;
    for (let silence = 0; !b.transitions.includes('leading'); silence += 1) {
      const before = b.heartbeats;
      await advanceSeconds(replicas, 1);
      if (b.heartbeats > before) silence = 0;
      longestSilence = Math.max(longestSilence, silence);
    }
    expect(longestSilence).toBeLessThan(10);
    expect(replicas.clock.monotonic() - stoppedAt).toBeGreaterThanOrEqual(2 * maxRequestMs - 2_000);
    await end(replicas);
  });

  it('a replica reports once that the driver has another store', async () => {
    const replicas = twoReplicas();
    const { a, b } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    start(b);
    await advanceSeconds(replicas, 40);
    expect(b.separateStores).toEqual([]);
    await advanceSeconds(replicas, 60);
    expect(b.separateStores).toEqual(['a']);
    expect(a.separateStores).toEqual([]);
    await end(replicas);
  });

  it('a replica that waits for a dead driver does not report another store', async () => {
    const replicas = twoReplicas();
    const { a, b } = replicas;
    start(a);
    await advanceSeconds(replicas, 5);
    a.cluster.disconnect();
    start(b);
    while (!b.transitions.includes('leading')) await advanceSeconds(replicas, 1);
    expect(b.transitions[0]).toBe('waiting for a');
    expect(b.separateStores).toEqual([]);
    await end(replicas);
  });
});

describe('the time in which the holder of the Lease may act', () => {
  const WINDOW_MS = 14_000;

  async function anElection() {
    const clock = new VirtualClock();
    const cluster = new MemoryCluster({ clock, random: new SeededRandom(6) });
    const election = new LeaderElection(
      {
        clock,
        cluster,
        store: new MemoryStore({ clock }),
        hypervisors: new Map(),
        random: new SeededRandom(1),
        settings: someSettings(),
      },
      cluster,
    );
    expect(await election.win(new AbortController().signal, {})).toBe(true);
    const resign = () => advanceUntilSettled(clock, election.resign());
    return { clock, cluster, election, resign };
  }

  it('ends the longest request before the Lease does, when the process was frozen meanwhile', async () => {
    const { clock, election, resign } = await anElection();
    const wall = clock.now();
    clock.setWallClock(wall + WINDOW_MS - 1);
    expect(election.mayAct()).toBe(true);
    clock.setWallClock(wall + WINDOW_MS);
    expect(election.mayAct()).toBe(false);
    await resign();
  });

  it('ends the longest request before the Lease does, when the wall clock is set back', async () => {
    const { clock, cluster, election, resign } = await anElection();
    const wall = clock.now();
    cluster.disconnect();
    for (let second = 1; second * 1_000 < WINDOW_MS; second += 1) {
      await clock.advance(1_000);
      clock.setWallClock(wall);
      expect(election.mayAct(), `after ${second} s`).toBe(true);
    }
    await clock.advance(1_000);
    clock.setWallClock(wall);
    expect(election.mayAct()).toBe(false);
    await resign();
  });

  it('ends at once when a renewal finds that another process holds the Lease', async () => {
    const { clock, cluster, election, resign } = await anElection();
    const lease = cluster.state.leases.get('reconcile')!;
    cluster.state.leases.set('reconcile', { ...lease, holder: 'other' });
    await clock.advance(5_000);
    expect(election.mayAct()).toBe(false);
    await resign();
  });
});
