// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../ports/fakes/virtual-clock.ts';
import type { Log } from '../../ports/log.ts';
import { Vigil } from './vigil.ts';

function aVigil() {
  const clock = new VirtualClock();
  const quiet = () => undefined;
  const log: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet, with: () => log };
  const meters = { add: quiet, observe: quiet, set: quiet };
  return { clock, vigil: new Vigil({ clock, log, meters }) };
}

describe('health', () => {
  it('fails when the loop has not moved for two minutes', async () => {
    const { clock, vigil } = aVigil();
    await clock.advance(119_000);
    expect(vigil.health().healthy).toBe(true);
    await clock.advance(2_000);
    expect(vigil.health()).toEqual({
      healthy: false,
      problems: ['the loop has not moved for 121 s'],
    });
    vigil.events.onHeartbeat?.();
    expect(vigil.health().healthy).toBe(true);
  });

  it('bears a long round, and not one without end', async () => {
    const { clock, vigil } = aVigil();
    vigil.events.onPassBegin?.();
    await clock.advance(15 * 60_000);
    expect(vigil.health().healthy).toBe(true);
    await clock.advance(6 * 60_000);
    expect(vigil.health().problems).toEqual(['a round has been going on for 1260 s']);
    vigil.events.onPassEnd?.();
    expect(vigil.health().healthy).toBe(true);
  });
});

describe('readiness', () => {
  it('is not there before the face is, however soon both sides are seen', () => {
    const { vigil } = aVigil();
    vigil.awaits('Kubernetes');
    vigil.seen('Kubernetes');
    expect(vigil.readiness()).toMatchObject({
      ready: false,
      waitingFor: ['the face: not started yet'],
    });
    vigil.faceWaitsFor = () => [];
    expect(vigil.readiness().ready).toBe(true);
  });

  it('waits for both sides and the face, says what cannot be done, and ends with the process', () => {
    const { vigil } = aVigil();
    let face = ['gRPC'];
    vigil.faceWaitsFor = () => face;
    vigil.awaits('Proxmox region lab');
    vigil.awaits('Kubernetes', 'no answer');
    vigil.cannot('small', 'pool small cannot grow');
    expect(vigil.readiness()).toEqual({
      ready: false,
      waitingFor: ['Proxmox region lab: not read yet', 'Kubernetes: no answer', 'gRPC'],
      limits: ['pool small cannot grow'],
      leader: false,
    });
    vigil.seen('Proxmox region lab');
    vigil.seen('Kubernetes');
    face = [];
    vigil.events.onLeading?.(true);
    expect(vigil.readiness()).toMatchObject({ ready: true, waitingFor: [], leader: true });
    vigil.ends();
    expect(vigil.readiness().ready).toBe(false);
  });
});
