// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import type { PassReport } from '../fleet/index.ts';
import { Unreachable } from '../ports/errors.ts';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { Log } from '../ports/log.ts';
import { Watchdog } from './watchdog.ts';

function createWatchdog() {
  const clock = new VirtualClock();
  const ignore = () => undefined;
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const log: Log = { debug: ignore, info: ignore, warn, error: ignore, with: () => log };
  const counted: string[] = [];
  const add = (name: string, labels: Readonly<Record<string, string>>) =>
    void counted.push(`${name} ${labels['outcome']}`);
  const observe = (name: string) => void counted.push(name);
  const meters = { add, observe, set: ignore };
  return { clock, warnings, counted, watchdog: new Watchdog({ clock, log, meters }) };
}

const REPORT: PassReport = {
  stale: {},
  errors: {},
  undecided: [],
  inProgress: 0,
  orphans: [],
  nextPassAt: 0,
  seenAt: { regions: {}, cluster: undefined },
};

describe('Watchdog.health', () => {
  it('fails after two minutes without a heartbeat of the driver loop', async () => {
    const { clock, watchdog } = createWatchdog();
    await clock.advance(119_000);
    expect(watchdog.health().healthy).toBe(true);
    await clock.advance(2_000);
    expect(watchdog.health()).toEqual({
      healthy: false,
      problems: ['the driver loop has been stuck for 121 s'],
    });
    watchdog.events.onHeartbeat?.();
    expect(watchdog.health().healthy).toBe(true);
  });

  it('allows a reconcile pass of two minutes, and fails after that', async () => {
    const { clock, watchdog } = createWatchdog();
    watchdog.events.onPassBegin?.();
    await clock.advance(110_000);
    expect(watchdog.health().healthy).toBe(true);
    await clock.advance(20_000);
    expect(watchdog.health().problems).toEqual(['the reconcile pass has run for 130 s']);
    watchdog.events.onPassEnd?.('success');
    expect(watchdog.health().healthy).toBe(true);
  });
});

describe('Watchdog.readiness', () => {
  it('waits for the front end even if Proxmox and Kubernetes were read before', () => {
    const { watchdog } = createWatchdog();
    watchdog.expectRead('Kubernetes');
    watchdog.markRead('Kubernetes');
    expect(watchdog.readiness()).toMatchObject({
      ready: false,
      waitingFor: ['the front end: not started yet'],
    });
    watchdog.frontEndWaitsFor = () => [];
    expect(watchdog.readiness().ready).toBe(true);
  });

  it('lists unread sources and limitations, and turns false when the process stops', () => {
    const { watchdog } = createWatchdog();
    let frontEnd = ['gRPC'];
    watchdog.frontEndWaitsFor = () => frontEnd;
    watchdog.expectRead('Proxmox region lab');
    watchdog.expectRead('Kubernetes', 'no answer');
    watchdog.setLimitation('small', 'pool small cannot grow');
    expect(watchdog.readiness()).toEqual({
      ready: false,
      waitingFor: ['Proxmox region lab: not read yet', 'Kubernetes: no answer', 'gRPC'],
      limits: ['pool small cannot grow'],
      leader: false,
    });
    watchdog.markRead('Proxmox region lab');
    watchdog.markRead('Kubernetes');
    frontEnd = [];
    watchdog.events.onLeading?.(true);
    expect(watchdog.readiness()).toMatchObject({ ready: true, waitingFor: [], leader: true });
    watchdog.markStopping();
    expect(watchdog.readiness().ready).toBe(false);
  });
});

describe('Watchdog.readiness', () => {
  it('shows as limits what the last pass could not read', () => {
    const { watchdog } = createWatchdog();
    const why = 'it has not answered for 12 s';
    watchdog.events.onPass?.({ ...REPORT, stale: { lab: why }, clusterStale: 'no watch' });
    expect(watchdog.readiness().limits).toEqual([
      `Proxmox region lab cannot be read: ${why}`,
      'Kubernetes cannot be read: no watch',
    ]);
    watchdog.events.onPass?.(REPORT);
    expect(watchdog.readiness().limits).toEqual([]);
  });
});

describe('Watchdog.events', () => {
  it('counts every pass once, by outcome, with its duration', () => {
    const { counted, watchdog } = createWatchdog();
    for (const outcome of ['success', 'incomplete', 'error', 'cancelled'] as const) {
      watchdog.events.onPassBegin?.();
      watchdog.events.onError?.(new Unreachable('PVE_UNREACHABLE', 'no answer'));
      watchdog.events.onPassEnd?.(outcome);
      if (outcome === 'success' || outcome === 'incomplete') watchdog.events.onPass?.(REPORT);
    }
    const durations = counted.filter((each) => each === 'pvescaler_reconcile_duration_seconds');
    const passes = counted.filter((each) => each.startsWith('pvescaler_reconciles_total'));
    expect(durations).toHaveLength(4);
    expect(passes.map((each) => each.split(' ')[1])).toEqual([
      'success',
      'incomplete',
      'error',
      'cancelled',
    ]);
  });

  it('warns that replicas must share a database when the driver uses another one', () => {
    const { warnings, watchdog } = createWatchdog();
    watchdog.events.onSeparateStore?.('other');
    expect(warnings).toEqual([expect.stringMatching(/replicas must share one/)]);
  });
});
