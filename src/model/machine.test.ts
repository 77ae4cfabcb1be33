// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  canTransition,
  countsTowardsTarget,
  type Machine,
  type MachineId,
  mayHaveVm,
  PHASE_TRANSITIONS,
  PHASES,
  type Phase,
  provisioningTimes,
  transitionMachine,
} from './machine.ts';

const machine: Machine = {
  id: '3c9f4a52-7d1b-4c5e-9a6f-0b2d4e6f8a10' as MachineId,
  pool: 'small',
  phase: 'booting',
  phaseSince: 1_000,
  requestedAt: 500,
  size: { cpu: 2, memoryBytes: 4 * 2 ** 30, diskBytes: 20 * 2 ** 30 },
  attempts: 3,
};

function reachable(from: Phase): Set<Phase> {
  const seen = new Set<Phase>([from]);
  for (const phase of seen) for (const next of PHASE_TRANSITIONS[phase]) seen.add(next);
  return seen;
}

describe('machine phases', () => {
  it('lead from requested to ready, and from every phase to gone', () => {
    expect(reachable('requested')).toEqual(new Set(PHASES));
    for (const phase of PHASES) expect(reachable(phase)).toContain('gone');
  });

  it('never lead back from deleting', () => {
    expect([...reachable('deleting')].sort()).toEqual(['deleting', 'failed', 'gone', 'kept']);
    expect(PHASE_TRANSITIONS.gone).toEqual([]);
  });

  it('reach failed only from phases in which nothing is left on the host', () => {
    const leadToFailed = PHASES.filter((phase) => canTransition(phase, 'failed'));
    expect(leadToFailed).toEqual(['requested', 'placed', 'deleting']);
  });

  it('allow cancelling a drain, but not a deletion', () => {
    expect(canTransition('draining', 'ready')).toBe(true);
    expect(canTransition('deleting', 'ready')).toBe(false);
  });

  it('return to requested only while nothing can have been created', () => {
    expect(PHASES.filter((phase) => canTransition(phase, 'requested'))).toEqual([
      'placed',
      'creating',
    ]);
  });

  it('count towards the target until drain, deletion or failure', () => {
    expect(PHASES.filter((phase) => !countsTowardsTarget(phase))).toEqual([
      'draining',
      'deleting',
      'kept',
      'failed',
      'gone',
    ]);
  });

  it('hold host, VM id and addresses from placement until gone', () => {
    expect(PHASES.filter((phase) => !mayHaveVm(phase))).toEqual(['requested', 'failed', 'gone']);
  });
});

describe('transitionMachine', () => {
  it('resets phaseSince and attempts and keeps everything else', () => {
    expect(transitionMachine(machine, 'joining', 2_000)).toEqual({
      ok: true,
      value: {
        ...machine,
        phase: 'joining',
        phaseSince: 2_000,
        phaseTimes: { joining: 2_000 },
        attempts: 0,
      },
    });
  });

  it('refuses an illegal transition and names both phases', () => {
    expect(transitionMachine(machine, 'requested', 2_000)).toEqual({
      ok: false,
      problem: `machine ${machine.id} cannot change from phase booting to requested`,
    });
  });
});

describe('provisioningTimes', () => {
  it('is the time from each known phase to the next, until ready', () => {
    const times = {
      requested: 900,
      placed: 2_000,
      booting: 3_000,
      ready: 10_000,
      draining: 99_000,
    };
    expect(provisioningTimes({ requestedAt: 500, phaseTimes: times })).toEqual([
      { phase: 'requested', ms: 1_500 },
      { phase: 'placed', ms: 1_000 },
      { phase: 'booting', ms: 7_000 },
    ]);
    expect(provisioningTimes({ requestedAt: 500 })).toEqual([]);
  });

  it('is never negative, although the clock may have been set back', () => {
    expect(
      provisioningTimes({ requestedAt: 500, phaseTimes: { placed: 400, ready: 450 } }),
    ).toEqual([
      { phase: 'requested', ms: 0 },
      { phase: 'placed', ms: 50 },
    ]);
  });
});
