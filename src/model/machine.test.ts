// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import {
  countsTowardsTarget,
  type Machine,
  MOVES,
  mayExist,
  mayMove,
  moved,
  PHASES,
  type Phase,
} from './machine.ts';
import type { MachineId } from './machine-id.ts';

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
  for (const phase of seen) for (const next of MOVES[phase]) seen.add(next);
  return seen;
}

describe('machine phases', () => {
  it('lead from the request to ready, and from everywhere to gone', () => {
    expect(reachable('requested')).toEqual(new Set(PHASES));
    for (const phase of PHASES) expect(reachable(phase)).toContain('gone');
  });

  it('never lead back from deletion', () => {
    expect([...reachable('deleting')].sort()).toEqual(['deleting', 'failed', 'gone']);
    expect(MOVES.gone).toEqual([]);
  });

  it('reach failed only from where nothing is left on the host', () => {
    const leadToFailed = PHASES.filter((phase) => mayMove(phase, 'failed'));
    expect(leadToFailed).toEqual(['requested', 'placed', 'deleting']);
  });

  it('let a drain be called off, but not a deletion', () => {
    expect(mayMove('draining', 'ready')).toBe(true);
    expect(mayMove('deleting', 'ready')).toBe(false);
  });

  it('go back to requested only while nothing can have been made', () => {
    expect(PHASES.filter((phase) => mayMove(phase, 'requested'))).toEqual(['placed', 'creating']);
  });

  it('count towards the target until deletion or failure', () => {
    expect(PHASES.filter((phase) => !countsTowardsTarget(phase))).toEqual([
      'deleting',
      'failed',
      'gone',
    ]);
  });

  it('hold host, id and addresses from placement until gone', () => {
    expect(PHASES.filter((phase) => !mayExist(phase))).toEqual(['requested', 'failed', 'gone']);
  });
});

describe('moved', () => {
  it('sets the clock and the attempts anew and keeps the rest', () => {
    expect(moved(machine, 'joining', 2_000)).toEqual({
      ok: true,
      value: { ...machine, phase: 'joining', phaseSince: 2_000, attempts: 0 },
    });
  });

  it('refuses an illegal move in words', () => {
    expect(moved(machine, 'requested', 2_000)).toEqual({
      ok: false,
      problem: `machine ${machine.id} cannot move from booting to requested`,
    });
  });
});
