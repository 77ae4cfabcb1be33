// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../ports/fakes/virtual-clock.ts';
import type { Log } from '../ports/log.ts';
import { Watchdog } from './watchdog.ts';

function createWatchdog() {
  const clock = new VirtualClock();
  const ignore = () => undefined;
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const log: Log = { debug: ignore, info: ignore, warn, error: ignore, with: () => log };
  const meters = { add: ignore, observe: ignore, set: ignore };
  return { clock, warnings, watchdog: new Watchdog({ clock, log, meters }) };
}

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
    watchdog.events.onPassEnd?.();
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

describe('Watchdog.events', () => {
  it('warns that replicas must share a database when the driver uses another one', () => {
    const { warnings, watchdog } = createWatchdog();
    watchdog.events.onSeparateStore?.('other');
    expect(warnings).toEqual([expect.stringMatching(/replicas must share one/)]);
  });
});
