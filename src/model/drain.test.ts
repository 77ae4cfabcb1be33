// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from 'vitest';
import { DRAIN_MOVES, DRAIN_STATES, type DrainState } from './drain.ts';

function reachable(from: DrainState): Set<DrainState> {
  const seen = new Set<DrainState>([from]);
  for (const state of seen) for (const next of DRAIN_MOVES[state]) seen.add(next);
  return seen;
}

describe('drain states', () => {
  it('all begin with the record, before the Node is touched', () => {
    expect(reachable('wanted')).toEqual(new Set(DRAIN_STATES));
  });

  it('end either done or undone', () => {
    const ends = DRAIN_STATES.filter((state) => DRAIN_MOVES[state].length === 0);
    expect(ends).toEqual(['done', 'undone']);
  });

  it('can be called off until done, and once called off only be undone', () => {
    for (const state of ['wanted', 'cordoned', 'evicting', 'waiting-for-volumes'] as const) {
      expect(reachable(state)).toContain('undone');
    }
    expect(reachable('done')).not.toContain('undone');
    expect([...reachable('undoing')]).toEqual(['undoing', 'undone']);
  });
});
